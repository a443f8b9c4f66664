package semel.bench;

import com.fasterxml.jackson.databind.DeserializationFeature;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.PropertyNamingStrategies;
import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.nio.charset.StandardCharsets;

/** Answers each line of standard input: the argument is the address of a broker. */
public final class Main {
  private Main() {}

  public static void main(String[] arguments) throws Exception {
    var json =
        new ObjectMapper()
            .setPropertyNamingStrategy(PropertyNamingStrategies.SNAKE_CASE)
            .enable(DeserializationFeature.FAIL_ON_NULL_CREATOR_PROPERTIES);
    var input = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
    for (String line = input.readLine(); line != null; line = input.readLine()) {
      Order order = json.readValue(line, Order.class);
      var meter = new Meter(order.task(), () -> System.out.println("began"));
      new Workloads(new Clients(arguments[0], order), order, meter).run();
      System.out.println(json.writeValueAsString(meter.sample()));
    }
  }
}
