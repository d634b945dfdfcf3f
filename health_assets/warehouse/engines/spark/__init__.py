"""Spark, through Spark Connect: the same expressions on as many machines as a cluster has."""
