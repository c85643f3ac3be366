package io.github.semyonsinchenko.safetensors.linkage

import java.io.File.pathSeparator
import java.nio.file.Paths

import org.objectweb.asm.{ClassWriter, MethodVisitor, Opcodes}
import org.scalatest.funsuite.AnyFunSuite

import io.github.semyonsinchenko.safetensors.format.Dtype

class LinkCheckSuite extends AnyFunSuite {
  private val check = new LinkCheck(ClassLoader.getPlatformClassLoader)

  test("the connector links against the Spark that these tests run on") {
    val connector = Paths.get(classOf[Dtype].getProtectionDomain.getCodeSource.getLocation.toURI)
    val classpath = System.getProperty("java.class.path").split(pathSeparator).toSeq.map(Paths.get(_))
    assert(LinkCheck.against(connector, classpath).isEmpty)
  }

  test("the connector does not link without Spark") {
    val connector = Paths.get(classOf[Dtype].getProtectionDomain.getCodeSource.getLocation.toURI)
    val broken    = LinkCheck.against(connector, Nil)
    assert(broken.exists(_.endsWith("refers to org/apache/spark/sql/types/StructType, which is not there")))
  }

  test("references that resolve are not reported: inherited, on arrays, and signature-polymorphic ones") {
    assert(check.broken(code(_.visitMethodInsn(Opcodes.INVOKEVIRTUAL, "java/util/ArrayList", "containsAll",
        "(Ljava/util/Collection;)Z", false))).isEmpty)
    assert(check.broken(code(_.visitMethodInsn(Opcodes.INVOKEVIRTUAL, "[I", "clone", "()Ljava/lang/Object;",
        false))).isEmpty)
    assert(check.broken(code(_.visitMethodInsn(Opcodes.INVOKEVIRTUAL, "java/lang/invoke/MethodHandle",
        "invokeExact", "(I)I", false))).isEmpty)
    assert(check.broken(code(_.visitFieldInsn(Opcodes.GETSTATIC, "java/util/jar/JarFile", "LOCSIG",
        "J"))).isEmpty)
  }

  broken("an absent class", "refers to java/lang/Absent, which is not there")(
    _.visitTypeInsn(Opcodes.NEW, "java/lang/Absent"))

  broken("an absent class in a descriptor", "refers to java/lang/Absent, which is not there")(
    _.visitMethodInsn(Opcodes.INVOKESTATIC, "Caller", "call", "([Ljava/lang/Absent;)V", false))

  broken("an absent method", "calls java/lang/String.absent()V, which is not there")(
    _.visitMethodInsn(Opcodes.INVOKEVIRTUAL, "java/lang/String", "absent", "()V", false))

  broken("a method with other parameters", "calls java/lang/String.length(I)I, which is not there")(
    _.visitMethodInsn(Opcodes.INVOKEVIRTUAL, "java/lang/String", "length", "(I)I", false))

  broken("an interface called as a class", "calls java/util/List.size()I as if it were a class's")(
    _.visitMethodInsn(Opcodes.INVOKEVIRTUAL, "java/util/List", "size", "()I", false))

  broken("an absent field", "refers to field java/lang/System.absent: I, which is not there")(
    _.visitFieldInsn(Opcodes.GETSTATIC, "java/lang/System", "absent", "I"))

  test("reported: an inherited abstract method without a body") {
    val writer = named("Unfinished", "java/util/Iterator")
    writer.visitEnd()
    assert(check.broken(writer.toByteArray) == Seq(
      "Unfinished lacks a body for java/util/Iterator.hasNext()Z",
      "Unfinished lacks a body for java/util/Iterator.next()Ljava/lang/Object;"))
  }

  private def broken(behaviour: String, message: String)(instruction: MethodVisitor => Unit): Unit =
    test(s"reported: $behaviour") {
      assert(check.broken(code(instruction)).contains(s"Caller $message"))
    }

  private def code(instruction: MethodVisitor => Unit): Array[Byte] = {
    val writer = named("Caller")
    val method = writer.visitMethod(Opcodes.ACC_STATIC, "run", "()V", null, null)
    method.visitCode()
    instruction(method)
    method.visitEnd()
    writer.toByteArray
  }

  private def named(name: String, interfaces: String*): ClassWriter = {
    val writer = new ClassWriter(0)
    writer.visit(Opcodes.V17, Opcodes.ACC_PUBLIC, name, null, "java/lang/Object", interfaces.toArray)
    writer
  }
}
