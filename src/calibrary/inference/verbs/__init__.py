"""The public functions of inference: interval, test, comparison, power, verdict, and a gate for builds."""
