package io.github.semyonsinchenko.safetensors.write.commit

import java.time.Instant
import java.time.temporal.ChronoUnit
import java.util.UUID

import scala.util.Try

import com.fasterxml.jackson.databind.ObjectMapper
import org.apache.hadoop.net.NetUtils

/**
 * What `_commit.lock` says of the write that holds it.
 *
 * @param id          of the holder; no two locks have the same
 * @param application of Spark
 * @param staleMillis how long waiting writes respect a lock of which nothing changes
 */
private[write] final case class LockRecord(
    id: String,
    application: String,
    process: Long,
    host: String,
    since: String,
    staleMillis: Long) {

  def toJson: String = LockRecord.mapper.writeValueAsString(LockRecord.mapper.createObjectNode()
      .put("id", id)
      .put("application", application)
      .put("process", process)
      .put("host", host)
      .put("since", since)
      .put("stale_after_ms", staleMillis))

  override def toString: String = s"application $application, process $process on $host, since $since"
}

private[write] object LockRecord {

  /** How long a holder may be silent. Ten times the interval of its signs of life. */
  val StaleMillis = 300000L

  private val mapper = new ObjectMapper

  /** A new holder in this process. */
  def of(application: String, staleMillis: Long = StaleMillis): LockRecord = LockRecord(
    UUID.randomUUID().toString,
    application,
    ProcessHandle.current().pid(),
    NetUtils.getLocalHostname,
    Instant.now.truncatedTo(ChronoUnit.SECONDS).toString,
    staleMillis
  )

  /** None for a lock that is not completely written. */
  def parse(text: String): Option[LockRecord] = Try {
    val root = mapper.readTree(text)
    LockRecord(
      // Names of files contain it.
      UUID.fromString(root.required("id").asText).toString,
      root.required("application").asText,
      root.required("process").asLong,
      root.required("host").asText,
      root.required("since").asText,
      root.required("stale_after_ms").asLong
    )
  }.toOption
}
