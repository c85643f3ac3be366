package io.github.semyonsinchenko.safetensors.common

import org.apache.spark.sql.connector.metric.{CustomSumMetric, CustomTaskMetric}

/** A number that Spark's UI shows, summed over tasks. Each is a top-level class without arguments: the UI makes it by its name. */
abstract class SumMetric(override val name: String, override val description: String) extends CustomSumMetric

/** A task's part of a metric. */
private[safetensors] final case class TaskMetric(name: String, value: Long) extends CustomTaskMetric
