"""Those who run in the benchmark, each driven by the settings its own documentation calls fast."""
