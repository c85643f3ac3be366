package io.github.semyonsinchenko.safetensors.common

import org.apache.spark.sql.connector.metric.{CustomSumMetric, CustomTaskMetric}

/** A metric summed over tasks. Subclasses are top-level and have no constructor arguments, because the UI loads them by name. */
abstract class SumMetric(override val name: String, override val description: String) extends CustomSumMetric

/** The value of a metric in one task. */
private[safetensors] final case class TaskMetric(name: String, value: Long) extends CustomTaskMetric
