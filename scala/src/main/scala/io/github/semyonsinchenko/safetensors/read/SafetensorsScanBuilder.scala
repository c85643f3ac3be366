package io.github.semyonsinchenko.safetensors.read

import org.apache.spark.sql.connector.expressions.aggregate.{Aggregation, CountStar}
import org.apache.spark.sql.connector.expressions.filter.Predicate
import org.apache.spark.sql.connector.read._
import org.apache.spark.sql.types.StructType

/** Collects what the query needs: columns and their fields, conditions, counts and a limit. */
private[safetensors] final class SafetensorsScanBuilder(source: ReadSource)
    extends ScanBuilder
    with SupportsPushDownV2Filters
    with SupportsPushDownAggregates
    with SupportsPushDownRequiredColumns
    with SupportsPushDownLimit {

  private var plan   = ScanPlan(source, source.schema)
  private var counts = Option.empty[Int]

  /** Accepts predicates that files and headers can decide, and returns the others. */
  override def pushPredicates(predicates: Array[Predicate]): Array[Predicate] = {
    plan = plan.narrowed(predicates.toVector)
    predicates.filterNot(predicate => plan.pushed.exists(_._1 eq predicate))
  }

  override def pushedPredicates(): Array[Predicate] = plan.pushed.map(_._1).toArray

  override def pruneColumns(requiredSchema: StructType): Unit = plan = plan.copy(required = requiredSchema)

  /** Accepts `COUNT(*)` if the row count is known from the listing. */
  override def supportCompletePushDown(aggregation: Aggregation): Boolean = {
    val functions = aggregation.aggregateExpressions
    aggregation.groupByExpressions.isEmpty && functions.nonEmpty && functions.forall(
      _.isInstanceOf[CountStar]) &&
      plan.rowCount.isDefined
  }

  override def pushAggregation(aggregation: Aggregation): Boolean = {
    counts = Some(aggregation.aggregateExpressions.length).filter(_ => supportCompletePushDown(aggregation))
    counts.isDefined
  }

  override def pushLimit(limit: Int): Boolean = {
    plan = plan.copy(limit = Some(limit))
    true
  }

  // Each task stops at the limit. Spark limits the total.
  override def isPartiallyPushed: Boolean = true

  override def build(): Scan = counts.fold[Scan](new SafetensorsScan(plan))(new CountScan(plan, _))
}
