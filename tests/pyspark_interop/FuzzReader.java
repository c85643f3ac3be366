import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ObjectNode;
import com.sun.management.ThreadMXBean;
import io.github.semyonsinchenko.safetensors.dataset.MappedSource;
import io.github.semyonsinchenko.safetensors.format.ByteSource;
import io.github.semyonsinchenko.safetensors.format.Header;
import io.github.semyonsinchenko.safetensors.format.InvalidFileException;
import io.github.semyonsinchenko.safetensors.format.Refusal;
import io.github.semyonsinchenko.safetensors.format.RepeatedNames;
import io.github.semyonsinchenko.safetensors.format.TensorInfo;
import java.io.BufferedReader;
import java.io.File;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.io.PrintWriter;
import java.io.StringWriter;
import java.lang.management.ManagementFactory;
import java.math.BigInteger;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import scala.collection.IndexedSeq;
import scala.jdk.javaapi.CollectionConverters;

/**
 * What the connector's reader makes of files: the fuzz's side of it. Takes paths and gives answers as {@code judge.py} does, a
 * line for each. An accepted file's tells besides if it {@code repeats_names}. What must never be is {@code {"fault": what}}.
 *
 * <p>Java, because it is compiled where it runs, against the jar that users get.
 */
public final class FuzzReader {

  /** What the reader may allocate for a header beyond a multiple of its bytes: buffers, and an error. */
  private static final long ALLOCATED_ALWAYS = 256 * 1024;

  private static final long ALLOCATED_PER_BYTE = 64;

  private static final ThreadMXBean THREADS = (ThreadMXBean) ManagementFactory.getThreadMXBean();
  private static final ObjectMapper JSON = new ObjectMapper();

  public static void main(String[] arguments) throws Exception {
    var paths = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
    var answers = new PrintStream(System.out, false, StandardCharsets.UTF_8);
    for (var path = paths.readLine(); path != null; path = paths.readLine()) {
      answers.println(JSON.writeValueAsString(answer(new File(JSON.readValue(path, String.class)))));
      answers.flush();
    }
  }

  private static ObjectNode answer(File file) {
    try {
      var inMemory = new Watched(file.getPath(), Files.readAllBytes(file.toPath()));
      var found = read(inMemory);
      try (var mapped = new MappedSource(file, file.getPath())) {
        var again = read(mapped);
        return again.equals(found) ? found : fault("the mapped file is read as " + again);
      }
    } catch (Throwable unexpected) {
      var trace = new StringWriter();
      unexpected.printStackTrace(new PrintWriter(trace));
      return fault(trace.toString());
    }
  }

  private static ObjectNode fault(String what) {
    return JSON.createObjectNode().put("fault", what);
  }

  private static ObjectNode read(ByteSource source) {
    var answer = JSON.createObjectNode();
    var before = THREADS.getCurrentThreadAllocatedBytes();
    try {
      var header = header(source, RepeatedNames.LastCounts$.MODULE$);
      checkAllocated(source, before);
      answer.put("repeats_names", repeatsNames(source));
      var metadata = answer.putObject("metadata");
      CollectionConverters.asJava(header.metadata()).forEach(metadata::put);
      var tensors = answer.putObject("tensors");
      for (var tensor : CollectionConverters.asJava(header.tensors())) {
        tensors.set(tensor.name(), tensor(source, header, tensor));
      }
    } catch (InvalidFileException refused) {
      checkAllocated(source, before);
      if (!refused.getMessage().startsWith(source.name())) throw new AssertionError(refused.getMessage());
      answer.put("refused", refused.refusal().toString()).put("message", refused.detail());
    }
    return answer;
  }

  // Scala does not declare what it throws.
  private static Header header(ByteSource source, RepeatedNames names) throws InvalidFileException {
    return Header.read(source, names);
  }

  private static boolean repeatsNames(ByteSource source) throws InvalidFileException {
    try {
      header(source, RepeatedNames.Refused$.MODULE$);
      return false;
    } catch (InvalidFileException refused) {
      if (refused.refusal() != Refusal.RepeatedName$.MODULE$) throw refused;
      return true;
    }
  }

  private static void checkAllocated(ByteSource source, long before) {
    var allocated = THREADS.getCurrentThreadAllocatedBytes() - before;
    if (allocated > ALLOCATED_ALWAYS + ALLOCATED_PER_BYTE * source.length()) {
      throw new AssertionError(allocated + " bytes allocated for a file of " + source.length());
    }
  }

  private static ObjectNode tensor(ByteSource source, Header header, TensorInfo tensor) {
    var entry = JSON.createObjectNode().put("dtype", tensor.dtype().name());
    var shape = entry.putArray("shape");
    var dims = (IndexedSeq<?>) tensor.shape();
    for (var i = 0; i < dims.length(); i++) {
      shape.add(new BigInteger(Long.toUnsignedString((Long) dims.apply(i))));
    }
    return entry.put("data", source.bytes(header.dataStart() + tensor.begin(), Math.toIntExact(tensor.size())));
  }

  /** A file in memory, of which only bytes that it has may be asked. */
  private static final class Watched implements ByteSource {
    private final String name;
    private final byte[] content;

    Watched(String name, byte[] content) {
      this.name = name;
      this.content = content;
    }

    @Override
    public String name() {
      return name;
    }

    @Override
    public long length() {
      return content.length;
    }

    @Override
    public void read(long position, byte[] target, int offset, int count) {
      if (position < 0 || count < 0 || position + count > content.length) {
        throw new AssertionError(count + " bytes from " + position + " asked of a file of " + content.length);
      }
      System.arraycopy(content, (int) position, target, offset, count);
    }

    @Override
    public void close() {}
  }
}
