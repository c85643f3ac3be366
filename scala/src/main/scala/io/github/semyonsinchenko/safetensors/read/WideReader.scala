package io.github.semyonsinchenko.safetensors.read

import scala.util.Using

import org.apache.hadoop.conf.Configuration
import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.expressions.GenericInternalRow
import org.apache.spark.sql.connector.read.PartitionReader

import io.github.semyonsinchenko.safetensors.dataset.{DataFile, Sources, UnreadableFileException}
import io.github.semyonsinchenko.safetensors.format.{ByteSource, Header}

/** One file as one row: a column for each tensor that the query needs. */
private[read] final class WideReader(file: DataFile, columns: Vector[TensorColumn], conf: Configuration)
    extends PartitionReader[InternalRow] {

  private var row: InternalRow = _

  override def next(): Boolean = {
    val isFirst = row == null
    if (isFirst)
      row = Using.resource(Sources.open(file, conf))(source => readRow(source, Sources.header(source)))
    isFirst
  }

  private def readRow(source: ByteSource, header: Header): InternalRow =
    new GenericInternalRow(columns.map(cell(source, header, _)).toArray[Any])

  private def cell(source: ByteSource, header: Header, column: TensorColumn): Any =
    header.tensor(column.name) match {
      case Some(tensor)            => TensorRow.of(source, header, tensor, column.fields)
      case None if column.nullable => null
      case None => throw new UnreadableFileException(
          s"${file.path} has no tensor `${column.name}`, which the schema requires. Make the column nullable to read null there.")
    }

  override def get(): InternalRow = row

  override def close(): Unit = ()
}
