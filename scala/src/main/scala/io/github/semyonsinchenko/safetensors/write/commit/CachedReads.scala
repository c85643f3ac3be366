package io.github.semyonsinchenko.safetensors.write.commit

import org.apache.hadoop.fs.Path
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan
import org.apache.spark.sql.classic.SparkSession
import org.apache.spark.sql.execution.{CachedData, CacheManager}
import org.apache.spark.sql.execution.datasources.v2.DataSourceV2Relation

import io.github.semyonsinchenko.safetensors.dataset.SnapshotTable

/**
 * What the application has cached of a dataset. Spark's own file sources renew that by path when they write; for other sources
 * Spark compares the written relation with the cached ones, which never agree where reads and writes have options of their own.
 */
private[write] object CachedReads {

  /** Has everything cached that reads this dataset read it again, when it is next needed. */
  def renew(written: Path): Unit = {
    val session = SparkSession.active
    val manager = session.sharedState.cacheManager
    val stale   = entries(manager).map(_.plan).filter(tablesOf(_).exists(_.covers(written)))
    // All tables first: equal ones share a snapshot, and Spark compares them when it reads the first plan again.
    stale.flatMap(tablesOf).filter(_.covers(written)).foreach(_.renew())
    stale.foreach(manager.recacheByPlan(session, _))
  }

  private def tablesOf(plan: LogicalPlan): Seq[SnapshotTable] =
    plan.collectWithSubqueries { case relation: DataSourceV2Relation => relation.table }
      .collect { case table: SnapshotTable => table }

  // Spark has no public way to list them. The accessor is the same in 4.0 to 4.3.
  private def entries(manager: CacheManager): Seq[CachedData] = {
    val accessor = classOf[CacheManager].getDeclaredMethod("cachedData")
    accessor.setAccessible(true)
    accessor.invoke(manager).asInstanceOf[Seq[CachedData]]
  }
}
