"""What runs beside Spark: the connector's jar, sessions and their JVM, and what is needed to start one."""
