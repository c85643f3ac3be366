package io.github.semyonsinchenko.safetensors.linkage

import java.net.URLClassLoader
import java.nio.file.{Files, FileSystems, Path, Paths}

import scala.collection.mutable
import scala.jdk.CollectionConverters._
import scala.util.Using

import org.objectweb.asm.{ClassReader, Opcodes}
import org.objectweb.asm.tree.{ClassNode, MethodNode}

/**
 * Finds what compiled code refers to in vain: the errors that a JVM would raise while it runs (no such class, method
 * or field, a class that became an interface, an abstract method without a body), before it does.
 *
 * @param classpath all that the code may refer to, itself included; the JDK's classes come by its parent
 */
final class LinkCheck(classpath: ClassLoader) {
  private val known    = mutable.HashMap.empty[String, Option[ClassNode]]
  private val lineages = mutable.HashMap.empty[String, Seq[ClassNode]]

  /** What does not link in the class of these bytes, a sentence each; empty if all does. */
  def broken(bytes: Array[Byte]): Seq[String] = {
    val code = new ClassReader(bytes)
    val self = parse(code)
    known(code.getClassName) = Some(self)
    val found = References.of(code).flatMap(problem) ++ withoutBody(self).map(m => s"lacks a body for $m")
    found.distinct.map(what => s"${code.getClassName} $what")
  }

  private def problem(reference: Reference): Option[String] = reference match {
    case ClassReference(name) =>
      if (find(name).isEmpty) Some(s"refers to $name, which is not there") else None
    case FieldReference(owner, name, descriptor) =>
      val fields = lineage(owner).flatMap(_.fields.asScala)
      if (fields.exists(field => field.name == name && field.desc == descriptor)) None
      else Some(s"refers to field $owner.$name: $descriptor, which is not there")
    case MethodReference(owner, name, descriptor, onInterface) =>
      val method = s"$owner.$name$descriptor"
      find(owner).flatMap { target =>
        if (isInterface(target) != onInterface) Some(s"calls $method as if it were ${kind(onInterface)}")
        else if (declares(owner, name, descriptor)) None
        else Some(s"calls $method, which is not there")
      }
  }

  private def kind(interface: Boolean): String = if (interface) "an interface's" else "a class's"

  private def declares(owner: String, name: String, descriptor: String): Boolean =
    lineage(owner).flatMap(_.methods.asScala).exists { method =>
      method.name == name && (method.desc == descriptor || takesAnything(owner))
    }

  // The JVM links calls of their methods with whatever descriptor the caller has.
  private def takesAnything(owner: String): Boolean =
    owner == "java/lang/invoke/MethodHandle" || owner == "java/lang/invoke/VarHandle"

  /** Abstract methods that a class, itself not abstract, inherits and nobody implements. */
  private def withoutBody(code: ClassNode): Seq[String] =
    if ((code.access & Opcodes.ACC_ABSTRACT) != 0) Nil
    else {
      val methods = lineage(code).flatMap(owner => owner.methods.asScala.map(owner -> _))
      val bodies  = methods.collect { case (_, m) if !isAbstract(m) => m.name + m.desc }.toSet
      methods.collect {
        case (owner, m) if isAbstract(m) && !bodies(m.name + m.desc) => s"${owner.name}.${m.name}${m.desc}"
      }
    }

  /** A class and all that it inherits from; nothing if there is no such class. */
  private def lineage(name: String): Seq[ClassNode] =
    lineages.getOrElseUpdate(name, find(name).fold(Seq.empty[ClassNode])(lineage))

  private def lineage(code: ClassNode): Seq[ClassNode] =
    (code +: (Option(code.superName) ++ code.interfaces.asScala).toSeq.flatMap(lineage)).distinct

  private def find(name: String): Option[ClassNode] = known.getOrElseUpdate(
    name,
    Option(classpath.getResourceAsStream(s"$name.class")).map(in =>
      Using.resource(in)(in => parse(new ClassReader(in)))))

  private def parse(code: ClassReader): ClassNode = {
    val node = new ClassNode()
    code.accept(node, ClassReader.SKIP_CODE | ClassReader.SKIP_DEBUG)
    node
  }

  private def isInterface(code: ClassNode): Boolean   = (code.access & Opcodes.ACC_INTERFACE) != 0
  private def isAbstract(method: MethodNode): Boolean = (method.access & Opcodes.ACC_ABSTRACT) != 0
}

object LinkCheck {

  /** `LinkCheck <jar> <folder of jars>...`: fails with a list of what in the jar does not link against a folder. */
  def main(arguments: Array[String]): Unit = {
    require(arguments.length > 1, "Usage: LinkCheck <jar> <folder of jars>...")
    val jar = Paths.get(arguments.head)
    if (arguments.tail.map(folder => report(jar, Paths.get(folder))).sum > 0) sys.exit(1)
  }

  private def report(jar: Path, folder: Path): Int = {
    val broken = against(jar, jarsIn(folder))
    println(s"$folder: ${if (broken.isEmpty) "all links" else s"${broken.size} references do not link"}")
    broken.foreach(what => println(s"  $what"))
    broken.size
  }

  /** What does not link in a jar, or a folder of classes, against other jars and the running JDK. */
  def against(code: Path, others: Seq[Path]): Seq[String] =
    Using.resource(loaderOf(code +: others)) { loader =>
      val check = new LinkCheck(loader)
      classesIn(code).flatMap(check.broken)
    }

  private def loaderOf(classpath: Seq[Path]): URLClassLoader =
    new URLClassLoader(classpath.map(_.toUri.toURL).toArray, ClassLoader.getPlatformClassLoader)

  private def jarsIn(folder: Path): Seq[Path] =
    Using.resource(Files.list(folder))(_.iterator.asScala.filter(_.toString.endsWith(".jar")).toVector)

  private def classesIn(code: Path): Seq[Array[Byte]] =
    if (Files.isDirectory(code)) classesUnder(code)
    else Using.resource(FileSystems.newFileSystem(code))(jar => classesUnder(jar.getPath("/")))

  private def classesUnder(folder: Path): Seq[Array[Byte]] =
    Using.resource(Files.walk(folder)) { files =>
      files.iterator.asScala.filter(_.toString.endsWith(".class")).map(Files.readAllBytes).toVector
    }
}
