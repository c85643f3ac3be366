import java.net.URLClassLoader

/** The version of everything: the wheel and the jar both read it from here. */
val projectVersion = IO.read(file("VERSION")).trim

/** One jar serves Spark 4.0 to 4.3, so it is compiled against the lowest of them. */
val compileSparkVersion = "4.0.0"

/** A folder of Spark's jars to test on, such as PySpark's `jars`: for Spark versions that Maven Central lacks. */
val sparkJars = sys.props.get("sparkJars").map(file)

/** What the tests run on; choose with `-DsparkVersion=4.0.1` or `-DsparkJars=<folder>`. */
val sparkVersion = sparkJars.map(versionOf).getOrElse(sys.props.getOrElse("sparkVersion", "4.1.0"))

def versionOf(jars: File): String = {
  val prefix = "spark-core_2.13-"
  val found  = (jars * s"$prefix*.jar").get().headOption
  found.map(_.base.stripPrefix(prefix)).getOrElse(sys.error(s"-DsparkJars: $jars holds no $prefix*.jar"))
}

/** The Scala library that each Spark line brings. */
def scalaOf(spark: String): String = spark.split('.').take(2).mkString(".") match {
  case "4.0" => "2.13.16"
  case "4.1" => "2.13.17"
  case _     => "2.13.18"
}

/** The JVM options that this Spark asks for on Java 17 and later: the list is its own, and differs by version. */
def sparkJavaOptions(classpath: Seq[File]): Seq[String] = {
  val launcher =
    new URLClassLoader(classpath.filter(_.name.startsWith("spark-launcher")).map(_.toURI.toURL).toArray)
  val options =
    launcher.loadClass("org.apache.spark.launcher.JavaModuleOptions").getMethod("defaultModuleOptions")
  options.invoke(null).asInstanceOf[String].split(' ').filter(_.nonEmpty).toSeq
}

ThisBuild / organization := "io.github.semyonsinchenko"
ThisBuild / version      := projectVersion
ThisBuild / scalacOptions ++= Seq(
  "-release:17",
  "-deprecation",
  "-feature",
  "-unchecked",
  "-Xlint",
  "-Werror",
  "-Wconf:cat=lint-infer-any:s")

// What Maven Central asks for. sbt brings the bundle there itself; the key signs it in the workflow of releases alone.
ThisBuild / description := "Read and write safetensors files with Apache Spark"
ThisBuild / homepage    := Some(url("https://github.com/SemyonSinchenko/safetensors-spark"))
ThisBuild / licenses    := Seq("Apache-2.0" -> url("https://www.apache.org/licenses/LICENSE-2.0.txt"))
ThisBuild / developers := List(
  Developer("SemyonSinchenko", "Semyon Sinchenko", "", url("https://github.com/SemyonSinchenko")))
ThisBuild / scmInfo := Some(
  ScmInfo(
    url("https://github.com/SemyonSinchenko/safetensors-spark"),
    "scm:git:https://github.com/SemyonSinchenko/safetensors-spark.git"))
ThisBuild / versionScheme := Some("early-semver")
ThisBuild / publishTo     := localStaging.value

/** The connector. Spark is provided, and brings Jackson, Parquet and Hadoop: the jar bundles nothing. */
lazy val connector = (project in file("scala"))
  .settings(
    name                                      := "safetensors-spark",
    scalaVersion                              := scalaOf(compileSparkVersion),
    libraryDependencies += "org.apache.spark" %% "spark-sql" % compileSparkVersion % Provided,
    // Names of other packages in `@throws` are clear to readers.
    Compile / doc / scalacOptions += "-no-link-warnings",
    Test / unmanagedSourceDirectories := Nil
  )

// A project of its own, because tests run on another Spark than the one compiled against.
lazy val tests = (project in file("scala/src/test"))
  .dependsOn(connector)
  .settings(
    publish / skip     := true,
    scalaVersion       := scalaOf(sparkVersion),
    target             := (ThisBuild / baseDirectory).value / "scala" / "target" / s"tests-$sparkVersion",
    Test / scalaSource := baseDirectory.value / "scala",
    Test / resourceDirectory := baseDirectory.value / "resources",
    libraryDependencies ++= Seq(
      "org.ow2.asm"        % "asm-tree"        % "9.11.1"   % Test,
      "org.scalatest"     %% "scalatest"       % "3.2.19"   % Test,
      "org.scalatestplus" %% "scalacheck-1-18" % "3.2.19.0" % Test
    ),
    libraryDependencies ++= sparkJars.fold(Seq("org.apache.spark" %% "spark-sql" % sparkVersion % Test))(_ =>
      Nil),
    Test / unmanagedJars ++= sparkJars.fold(Seq.empty[File])(jars => (jars * "*.jar").get()).classpath,
    Test / fork := true,
    Test / javaOptions ++= "-Xmx1g" +: sparkJavaOptions((Test / dependencyClasspath).value.files),
    Test / parallelExecution := false,
    Test / baseDirectory     := (ThisBuild / baseDirectory).value
  )

/** How fast the codec is; `make jmh` runs it. On the Spark that is compiled against, as the code measured is the same on all. */
lazy val benchmarks = (project in file("scala/benchmarks"))
  .dependsOn(connector)
  .enablePlugins(JmhPlugin)
  .settings(
    publish / skip                            := true,
    scalaVersion                              := scalaOf(compileSparkVersion),
    libraryDependencies += "org.apache.spark" %% "spark-sql" % compileSparkVersion,
    Jmh / javaOptions ++= "-Xmx2g" +: sparkJavaOptions((Compile / dependencyClasspath).value.files)
  )

lazy val root =
  (project in file(".")).aggregate(connector, tests, benchmarks).settings(publish / skip := true)

/** Hadoop's version in the PySpark that tests run on. */
val hadoopVersion = sys.props.getOrElse("hadoopVersion", "3.4.2")

/** The AWS SDK that this Hadoop calls. */
val awsSdkVersion = if (hadoopVersion.startsWith("3.4.")) "2.29.52" else "2.35.4"

/**
 * What tests of file systems need beside PySpark's jars: HDFS's servers, and S3A with the parts of the AWS SDK that it calls,
 * as the whole of it has 500 MB. What Spark brings itself is left out.
 */
lazy val filesystems = (project in file("project/filesystems"))
  .settings(
    publish / skip   := true,
    autoScalaLibrary := false,
    libraryDependencies ++= Seq(
      "org.apache.hadoop" % "hadoop-client-minicluster" % hadoopVersion,
      "org.apache.hadoop" % "hadoop-aws"                % hadoopVersion,
      // The minicluster of Hadoop 3.5 asks for it, and does not say so.
      "org.junit.jupiter"      % "junit-jupiter-api"   % "5.11.4",
      "software.amazon.awssdk" % "apache-client"       % awsSdkVersion,
      "software.amazon.awssdk" % "s3-transfer-manager" % awsSdkVersion
    ),
    excludeDependencies ++= Seq(
      "org.apache.hadoop"         % "hadoop-client-api",
      "org.apache.hadoop"         % "hadoop-client-runtime",
      "software.amazon.awssdk"    % "bundle",
      "org.wildfly.openssl"       % "wildfly-openssl",
      "commons-codec"             % "commons-codec",
      "commons-logging"           % "commons-logging",
      "io.netty"                  % "*",
      "org.apache.httpcomponents" % "*",
      "org.xerial.snappy"         % "snappy-java",
      "org.slf4j"                 % "slf4j-api"
    )
  )
