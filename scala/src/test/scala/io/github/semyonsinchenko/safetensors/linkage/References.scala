package io.github.semyonsinchenko.safetensors.linkage

import org.objectweb.asm.{ClassReader, Type}

/** What compiled code names outside of itself. Names are the JVM's internal ones: `java/lang/String`. */
sealed trait Reference
final case class ClassReference(name: String)                                    extends Reference
final case class FieldReference(owner: String, name: String, descriptor: String) extends Reference
final case class MethodReference(owner: String, name: String, descriptor: String, onInterface: Boolean)
    extends Reference

/** Reads references from a class's constant pool, where all of them stand: method handles and lambdas too. */
object References {
  // Tags of JVMS 4.4.
  private val Class           = 7
  private val Field           = 9
  private val Method          = 10
  private val InterfaceMethod = 11
  private val NameAndType     = 12

  def of(code: ClassReader): Seq[Reference] = {
    val text = new Array[Char](code.getMaxStringLength)
    (1 until code.getItemCount).map(code.getItem).filter(_ > 0).flatMap { item =>
      code.readByte(item - 1) match {
        case Class                    => classOf(Type.getObjectType(code.readUTF8(item, text)))
        case NameAndType              => classesOf(Type.getType(code.readUTF8(item + 2, text)))
        case Field                    => Seq(field(code, item, text))
        case Method | InterfaceMethod => Seq(method(code, item, text))
        case _                        => Nil
      }
    }
  }

  private def field(code: ClassReader, item: Int, text: Array[Char]): Reference = {
    val member = code.getItem(code.readUnsignedShort(item + 2))
    FieldReference(code.readClass(item, text), code.readUTF8(member, text), code.readUTF8(member + 2, text))
  }

  private def method(code: ClassReader, item: Int, text: Array[Char]): Reference = {
    val member = code.getItem(code.readUnsignedShort(item + 2))
    val owner  = code.readClass(item, text)
    MethodReference(
      // An array's methods are Object's.
      if (owner.startsWith("[")) "java/lang/Object" else owner,
      code.readUTF8(member, text),
      code.readUTF8(member + 2, text),
      onInterface = code.readByte(item - 1) == InterfaceMethod
    )
  }

  private def classesOf(descriptor: Type): Seq[Reference] = descriptor.getSort match {
    case Type.METHOD => (descriptor.getReturnType +: descriptor.getArgumentTypes.toSeq).flatMap(classOf)
    case _           => classOf(descriptor)
  }

  private def classOf(named: Type): Seq[Reference] = named.getSort match {
    case Type.ARRAY  => classOf(named.getElementType)
    case Type.OBJECT => Seq(ClassReference(named.getInternalName))
    case _           => Nil
  }
}
