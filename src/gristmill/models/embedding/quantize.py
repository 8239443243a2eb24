"""Stores the matrices of an ONNX model in eight bits: the vector of one text takes half the time.

One text takes as long as reading the weights from memory takes, and in eight bits they are a quarter. Only the fields
of the ONNX format that change are described here; protobuf keeps all other fields as they are.
"""

from collections import Counter
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from google.protobuf import descriptor_pb2, descriptor_pool, message_factory
from numpy.typing import NDArray

INT8, FLOAT, EXTERNAL = 3, 1, 1  # numbers of TensorProto
# Six bits and the sign: processors without VNNI add two products in sixteen bits, and larger numbers would overflow.
STEPS = 63
PRODUCT, NO_ZERO_POINT = "DynamicQuantizeMatMul", ""

# message → field → number, type, whether it is a list
FORMAT = {
    "Entry": {"key": (1, "string", False), "value": (2, "string", False)},
    "Tensor": {
        "dims": (1, "int64", True),
        "data_type": (2, "int32", False),
        "name": (8, "string", False),
        "raw_data": (9, "bytes", False),
        "external_data": (13, "Entry", True),
        "data_location": (14, "int32", False),
    },
    "Node": {
        "input": (1, "string", True),
        "output": (2, "string", True),
        "op_type": (4, "string", False),
        "domain": (7, "string", False),
    },
    "Graph": {"node": (1, "Node", True), "initializer": (5, "Tensor", True)},
    "Model": {"graph": (7, "Graph", False)},
}


def quantize_model(graph: Path) -> bytes:
    """The model of this file with its matrices in eight bits; all other weights stay in the file beside it."""
    model = read_model(graph.read_bytes())
    stored = {tensor.name: tensor for tensor in model.graph.initializer}
    for node in model.graph.node:
        if node.op_type == "MatMul" and node.input[1] in stored:
            scales = _quantize_matrix(stored[node.input[1]], graph.parent)
            model.graph.initializer.append(scales)
            node.op_type, node.domain = PRODUCT, "com.microsoft"
            node.input.append(scales.name)
    _fuse_biases(model.graph, stored)
    return model.SerializeToString()


def _fuse_biases(graph: Any, stored: Mapping[str, Any]) -> None:
    """Let each product add its bias itself: a step of its own would take a tenth of the time of the product."""
    products = {node.output[0]: node for node in graph.node if node.op_type == PRODUCT}
    uses = Counter(name for node in graph.node for name in node.input)
    for node in [node for node in graph.node if node.op_type == "Add"]:
        summed = [name for name in node.input if name in products and uses[name] == 1]
        biases = [name for name in node.input if name in stored and len(stored[name].dims) == 1]
        if summed and biases:
            product = products[summed[0]]
            product.input.extend([NO_ZERO_POINT, biases[0]])
            product.output[0] = node.output[0]
            graph.node.remove(node)


def _quantize_matrix(tensor: Any, folder: Path) -> Any:
    """Store the matrix in eight bits; return the factors by which its columns were divided."""
    matrix = _read_matrix(tensor, folder)
    scales = np.maximum(np.abs(matrix).max(axis=0), 1e-12) / STEPS
    tensor.raw_data = np.rint(matrix / scales).astype(np.int8).tobytes()
    tensor.data_type = INT8
    tensor.ClearField("external_data")
    tensor.ClearField("data_location")
    return type(tensor)(
        name=f"{tensor.name}.scales", dims=[len(scales)], data_type=FLOAT, raw_data=scales.astype("<f4").tobytes()
    )


def _read_matrix(tensor: Any, folder: Path) -> NDArray[np.float32]:
    assert (tensor.data_type, tensor.data_location) == (FLOAT, EXTERNAL), "the built-in model stores every matrix so"
    place = {entry.key: entry.value for entry in tensor.external_data}
    offset, rows, columns = int(place["offset"]), *map(int, tensor.dims)
    return np.fromfile(folder / place["location"], "<f4", rows * columns, offset=offset).reshape(rows, columns)


def read_model(data: bytes) -> Any:
    """Parse an ONNX model."""
    return _build_model_class().FromString(data)


@cache
def _build_model_class() -> Any:
    file = descriptor_pb2.FileDescriptorProto(name="onnx.proto", package="onnx", syntax="proto2")
    for name, fields in FORMAT.items():
        message = file.message_type.add(name=name)
        for field, (number, type_, many) in fields.items():
            one = message.field.add(name=field, number=number, label=3 if many else 1)
            if type_ in FORMAT:
                one.type_name, one.type = f".onnx.{type_}", one.TYPE_MESSAGE
            else:
                one.type = getattr(one, f"TYPE_{type_.upper()}")
    pool = descriptor_pool.DescriptorPool()
    pool.Add(file)
    return message_factory.GetMessageClass(pool.FindMessageTypeByName("onnx.Model"))
