"""What does a cluster take? By hand: python -m benchmarks.spark.building, .reading"""
