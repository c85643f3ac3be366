package io.github.semyonsinchenko.safetensors.codec

import java.nio.ByteBuffer

import io.github.semyonsinchenko.safetensors.format.Dtype

// Encoders that copy without conversion.

private[codec] object BooleansToBool extends Encoder[Array[Boolean]] {
  def dtype: Dtype = Dtype.BOOL
  def encode(values: Array[Boolean], out: ByteBuffer): Unit =
    values.foreach(value => out.put(if (value) 1.toByte else 0.toByte))
}

private[codec] object BytesToI8 extends Encoder[Array[Byte]] {
  def dtype: Dtype                                       = Dtype.I8
  def encode(values: Array[Byte], out: ByteBuffer): Unit = out.put(values): Unit
}

private[codec] object ShortsToI16 extends Encoder[Array[Short]] {
  def dtype: Dtype = Dtype.I16
  def encode(values: Array[Short], out: ByteBuffer): Unit = {
    out.asShortBuffer().put(values)
    out.position(out.position() + values.length * 2): Unit
  }
}

private[codec] object IntsToI32 extends Encoder[Array[Int]] {
  def dtype: Dtype = Dtype.I32
  def encode(values: Array[Int], out: ByteBuffer): Unit = {
    out.asIntBuffer().put(values)
    out.position(out.position() + values.length * 4): Unit
  }
}

private[codec] object LongsToI64 extends Encoder[Array[Long]] {
  def dtype: Dtype = Dtype.I64
  def encode(values: Array[Long], out: ByteBuffer): Unit = {
    out.asLongBuffer().put(values)
    out.position(out.position() + values.length * 8): Unit
  }
}

private[codec] object LongsToU64 extends Encoder[Array[Long]] {
  def dtype: Dtype = Dtype.U64
  def encode(values: Array[Long], out: ByteBuffer): Unit = {
    val negative = values.indexWhere(_ < 0)
    if (negative >= 0) throw new UnencodableValueException(values(negative).toString, negative, dtype)
    LongsToI64.encode(values, out)
  }
}

private[codec] object FloatsToF32 extends Encoder[Array[Float]] {
  def dtype: Dtype = Dtype.F32
  def encode(values: Array[Float], out: ByteBuffer): Unit = {
    out.asFloatBuffer().put(values)
    out.position(out.position() + values.length * 4): Unit
  }
}

private[codec] object DoublesToF64 extends Encoder[Array[Double]] {
  def dtype: Dtype = Dtype.F64
  def encode(values: Array[Double], out: ByteBuffer): Unit = {
    out.asDoubleBuffer().put(values)
    out.position(out.position() + values.length * 8): Unit
  }
}
