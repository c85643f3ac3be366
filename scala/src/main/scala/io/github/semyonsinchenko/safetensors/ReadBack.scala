package io.github.semyonsinchenko.safetensors

import org.apache.spark.sql.internal.SQLConf
import org.apache.spark.sql.types.{StructField, StructType}

import io.github.semyonsinchenko.safetensors.common.InvalidRequestException
import io.github.semyonsinchenko.safetensors.read.{Layout, StoredTypes}
import io.github.semyonsinchenko.safetensors.types.TensorStruct
import io.github.semyonsinchenko.safetensors.write.plan.{ColumnPlan, WriteMode, WriteOptions, WritePlan}

/** Checks that a table can be read with its columns after a write. */
private[safetensors] object ReadBack {

  /**
   * @param schema the columns of the table
   * @param layout the layout that an option of the table names
   * @param keys   the column of keys of the table, and what is between key and column in names of tensors
   * @throws InvalidRequestException if it cannot
   */
  def check(
      schema: StructType,
      plan: WritePlan,
      layout: Option[Layout],
      keys: Option[(String, String)]): Unit = {
    val isDecoded = schema.fields.exists(field => !TensorStruct.matches(field.dataType))
    layout.filter(asked => isDecoded && asked != Layout.Rows).foreach(asked =>
      refuse(s"its option `layout` is `${asked.name}`, which does not read " +
        s"${schema.map(field => s"`${field.name}` ${field.dataType.simpleString}").mkString(", ")}. Create it without `layout`"))
    plan.mode match {
      case keyed: WriteMode.KeyValue => checkKeys(plan, keyed, keys)
      case _: WriteMode.Batch        =>
    }
    schema.foreach(field => checkColumn(field, plan))
  }

  private def checkColumn(field: StructField, plan: WritePlan): Unit =
    plan.columns.find(column => isSame(column.name, field.name)) match {
      case Some(column)                    => checkType(field, column, plan)
      case None if isKey(field.name, plan) =>
      case None => refuse(
          s"the option `${WriteOptions.Columns.name}` leaves out its column `${field.name}`. Name that too")
    }

  private def checkType(field: StructField, column: ColumnPlan, plan: WritePlan): Unit = {
    val record = column.record(column.dtype, column.shape.orElse(shapeOf(field, column)))
    // A manifest of keys is not asked for the types.
    val known = if (plan.mode.isInstanceOf[WriteMode.Batch]) record else record.copy(sparkType = None)
    StoredTypes.misfit(field.dataType, known).foreach(choices =>
      refuse(
        s"its column `${field.name}` is ${field.dataType.simpleString}, and as ${column.dtype.fold("it is")(_.name)} it is read " +
          s"as $choices. Leave `${WriteOptions.TargetDtype.name}` or `${WriteOptions.Shapes.name}` out, or declare the column so"))
  }

  /** Rows of arrays have any shape of the same number of dimensions; the first one of ragged rows is not a value's. */
  private def shapeOf(field: StructField, column: ColumnPlan): Option[Seq[Int]] =
    Some(Seq.fill(StoredTypes.depth(field.dataType) - (if (column.kind.hasOffsets) 1 else 0))(1))

  private def checkKeys(plan: WritePlan, mode: WriteMode.KeyValue, keys: Option[(String, String)]): Unit = {
    for ((key, separator) <- keys) {
      if (!isSame(key, mode.nameColumn)) refuse(
        s"its keys are in column `$key`, not in `${mode.nameColumn}`. Leave `${WriteOptions.NameColumn.name}` out")
      if (separator != mode.separator && plan.columns.size > 1) refuse(
        s"its keys end where `$separator` begins, not `${mode.separator}`. Leave `${WriteOptions.Separator.name}` out")
    }
    val suffixes = plan.columns.map(mode.separator + _.name)
    for (one <- suffixes; other <- suffixes if one != other && one.endsWith(other))
      refuse(
        s"names of tensors that end with `$one` also end with `$other`, so that keys and columns cannot be told apart. Set " +
          s"another `${WriteOptions.Separator.name}`")
  }

  private def isKey(name: String, plan: WritePlan): Boolean = plan.mode match {
    case keyed: WriteMode.KeyValue => isSame(keyed.nameColumn, name)
    case _: WriteMode.Batch        => false
  }

  private def isSame(one: String, other: String) = SQLConf.get.resolver(one, other)

  private def refuse(why: String): Nothing =
    throw new InvalidRequestException(s"The table could not be read after this write: $why.")
}
