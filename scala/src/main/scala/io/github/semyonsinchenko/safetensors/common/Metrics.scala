package io.github.semyonsinchenko.safetensors.common

import scala.jdk.CollectionConverters._
import scala.util.Try

import org.apache.spark.sql.connector.metric.{CustomSumMetric, CustomTaskMetric}

/** A metric summed over tasks. Subclasses are top-level and have no constructor arguments, because the UI loads them by name. */
abstract class SumMetric(override val name: String, override val description: String) extends CustomSumMetric

/** The value of a metric in one task. */
private[safetensors] final case class TaskMetric(name: String, value: Long) extends CustomTaskMetric

private[safetensors] object Metrics {

  private val UiThread = "spark-listener-group-appStatus"

  /**
   * Whether Spark's UI can load the metrics' classes. It cannot where `ADD JAR` brought the jar, which only the session sees. Then
   * Spark would log a warning for each metric and update, so that there are better none.
   */
  lazy val areLoadable: Boolean =
    Thread.getAllStackTraces.keySet.asScala.find(_.getName == UiThread).forall { thread =>
      Try(Class.forName(classOf[SumMetric].getName, false, thread.getContextClassLoader)).isSuccess
    }
}
