package io.github.semyonsinchenko.safetensors.format

/**
 * The type of a tensor's elements.
 *
 * @param name the name in a header, as `dtype`
 * @param bits the size of one element; F4 and F6 elements share bytes
 */
sealed abstract class Dtype(val name: String, val bits: Int) extends Product with Serializable {

  /** Position in the official library's ascending order. Shards are sorted by it in descending order. */
  def rank: Int = Dtype.ranks(this)

  override def toString: String = name
}

/**
 * The dtypes of the format, as `Dtype` in huggingface/safetensors `safetensors/src/tensor.rs` lists them.
 *
 * The official JSON schema has no such list. Its pattern `([UIF])(8|16|32|64|128|256)` lacks BF16, BOOL and C64 if it is
 * anchored. If it is not, it accepts names that no reader accepts.
 */
object Dtype {
  case object BOOL        extends Dtype("BOOL", 8)
  case object F4          extends Dtype("F4", 4)
  case object F6_E2M3     extends Dtype("F6_E2M3", 6)
  case object F6_E3M2     extends Dtype("F6_E3M2", 6)
  case object U8          extends Dtype("U8", 8)
  case object I8          extends Dtype("I8", 8)
  case object F8_E5M2     extends Dtype("F8_E5M2", 8)
  case object F8_E4M3     extends Dtype("F8_E4M3", 8)
  case object F8_E8M0     extends Dtype("F8_E8M0", 8)
  case object F8_E4M3FNUZ extends Dtype("F8_E4M3FNUZ", 8)
  case object F8_E5M2FNUZ extends Dtype("F8_E5M2FNUZ", 8)
  case object I16         extends Dtype("I16", 16)
  case object U16         extends Dtype("U16", 16)
  case object F16         extends Dtype("F16", 16)
  // Not in the official JSON schema, see above.
  case object BF16 extends Dtype("BF16", 16)
  case object I32  extends Dtype("I32", 32)
  case object U32  extends Dtype("U32", 32)
  case object F32  extends Dtype("F32", 32)
  case object C64  extends Dtype("C64", 64)
  case object F64  extends Dtype("F64", 64)
  case object I64  extends Dtype("I64", 64)
  case object U64  extends Dtype("U64", 64)

  /** All dtypes, in the official library's ascending order. */
  val all: Vector[Dtype] = Vector(
    BOOL, F4, F6_E2M3, F6_E3M2, U8, I8, F8_E5M2, F8_E4M3, F8_E8M0, F8_E4M3FNUZ, F8_E5M2FNUZ,
    I16, U16, F16, BF16, I32, U32, F32, C64, F64, I64, U64)

  private val ranks: Map[Dtype, Int]     = all.zipWithIndex.toMap
  private val byName: Map[String, Dtype] = all.map(d => d.name -> d).toMap

  /** The dtype with this case-sensitive name, or none. */
  def of(name: String): Option[Dtype] = byName.get(name)
}
