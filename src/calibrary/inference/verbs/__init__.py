"""What people ask: interval, test, comparison, power, verdict, and a gate for builds."""
