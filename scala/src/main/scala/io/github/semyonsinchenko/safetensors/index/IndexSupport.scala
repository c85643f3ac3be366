package io.github.semyonsinchenko.safetensors.index

import java.nio.charset.StandardCharsets.UTF_8
import java.util

import org.apache.hadoop.conf.Configuration
import org.apache.parquet.hadoop.api.WriteSupport
import org.apache.parquet.hadoop.api.WriteSupport.WriteContext
import org.apache.parquet.io.api.{Binary, RecordConsumer}
import org.apache.parquet.schema.MessageTypeParser

/** Writes index entries as Parquet records. */
private[safetensors] final class IndexSupport extends WriteSupport[IndexEntry] {
  import IndexSupport._

  private var out: RecordConsumer = _

  override def init(conf: Configuration): WriteContext =
    new WriteContext(schema, new util.HashMap[String, String])

  override def prepareForWrite(consumer: RecordConsumer): Unit = out = consumer

  override def write(entry: IndexEntry): Unit = {
    out.startMessage()
    field("tensor_key", 0)(text(entry.key))
    field("file_name", 1)(text(entry.file))
    field("shape", 2)(list(entry.shape))
    field("dtype", 3)(text(entry.dtype))
    field("data_start", 4)(out.addLong(entry.start))
    field("data_end", 5)(out.addLong(entry.end))
    out.endMessage()
  }

  private def field(name: String, index: Int)(value: => Unit): Unit = {
    out.startField(name, index)
    value
    out.endField(name, index)
  }

  // `fromString` would make comparing and hashing slow.
  private def text(value: String): Unit = out.addBinary(Binary.fromConstantByteArray(value.getBytes(UTF_8)))

  private def list(values: Seq[Int]): Unit = {
    out.startGroup()
    if (values.nonEmpty) field("list", 0)(values.foreach { value =>
      out.startGroup()
      field("element", 0)(out.addInteger(value))
      out.endGroup()
    })
    out.endGroup()
  }
}

private[index] object IndexSupport {

  /** Footer key for the commit that created the file. */
  val CommitKey = "safetensors.commit_id"

  /** Footer key for the format version. The first indexes have none, which means 1.0. */
  val VersionKey = "safetensors.format_version"

  private val schema = MessageTypeParser.parseMessageType(
    """message tensor_index {
      |  required binary tensor_key (STRING);
      |  required binary file_name (STRING);
      |  required group shape (LIST) { repeated group list { required int32 element; } }
      |  required binary dtype (STRING);
      |  required int64 data_start;
      |  required int64 data_end;
      |}""".stripMargin)
}
