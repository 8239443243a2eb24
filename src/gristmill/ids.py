"""The kinds of id, so that a task is never taken for a worker."""

from typing import NewType

TaskId = NewType("TaskId", int)
WorkerId = NewType("WorkerId", int)
LeaseId = NewType("LeaseId", int)
DocumentId = NewType("DocumentId", int)
ScopeId = NewType("ScopeId", int)
ChunkId = NewType("ChunkId", int)
SourceId = NewType("SourceId", int)
ItemId = NewType("ItemId", int)
WorkItemId = NewType("WorkItemId", int)  # of an item in the qualifier; ItemId is that of an item of a source
DecisionId = NewType("DecisionId", int)
RunId = NewType("RunId", int)
StepId = NewType("StepId", int)
EffectId = NewType("EffectId", int)
QuestionId = NewType("QuestionId", int)
