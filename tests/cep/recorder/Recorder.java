import java.time.Duration;
import java.util.*;
import org.apache.flink.api.common.state.*;
import org.apache.flink.api.common.typeutils.base.StringSerializer;
import org.apache.flink.api.java.tuple.Tuple2;
import org.apache.flink.cep.configuration.SharedBufferCacheConfig;
import org.apache.flink.cep.nfa.NFA;
import org.apache.flink.cep.nfa.NFAState;
import org.apache.flink.cep.nfa.aftermatch.AfterMatchSkipStrategy;
import org.apache.flink.cep.nfa.compiler.NFACompiler;
import org.apache.flink.cep.nfa.sharedbuffer.SharedBuffer;
import org.apache.flink.cep.nfa.sharedbuffer.SharedBufferAccessor;
import org.apache.flink.cep.pattern.Pattern;
import org.apache.flink.cep.pattern.WithinType;
import org.apache.flink.cep.pattern.conditions.IterativeCondition;
import org.apache.flink.configuration.Configuration;
import org.apache.flink.shaded.jackson2.com.fasterxml.jackson.databind.JsonNode;
import org.apache.flink.shaded.jackson2.com.fasterxml.jackson.databind.ObjectMapper;
import org.apache.flink.shaded.jackson2.com.fasterxml.jackson.databind.node.ArrayNode;
import org.apache.flink.shaded.jackson2.com.fasterxml.jackson.databind.node.ObjectNode;

/**
 * Records what Flink's automaton makes of patterns: one JSON case a line on standard input, the same with "out" or
 * "error" on standard output. An event is {"id", "ts", and fields}; it is handed to the automaton as its JSON text.
 * Time is advanced as Flink's CepOperator does it: to the time of each event before the event, then to "end".
 */
public class Recorder {
    static final ObjectMapper JSON = new ObjectMapper();

    public static void main(String[] args) throws Exception {
        Scanner in = new Scanner(System.in, "UTF-8");
        while (in.hasNextLine()) {
            ObjectNode given = (ObjectNode) JSON.readTree(in.nextLine());
            try {
                given.set("out", run(given));
            } catch (Throwable problem) {
                given.put("error", problem.getClass().getSimpleName() + ": " + problem.getMessage());
            }
            System.out.println(JSON.writeValueAsString(given));
        }
        System.out.flush();
        System.exit(0); // the buffers' timers would keep the process
    }

    static final Map<String, JsonNode> READ = new HashMap<>();

    static JsonNode read(String text) throws Exception {
        JsonNode found = READ.get(text);
        if (found == null) {
            found = JSON.readTree(text);
            READ.put(text, found);
        }
        return found;
    }

    static ArrayNode run(JsonNode given) throws Exception {
        Pattern<String, ?> pattern = pattern(given.get("pattern"));
        NFA<String> nfa = NFACompiler.compileFactory(pattern, true).createNFA();
        AfterMatchSkipStrategy skip = pattern.getAfterMatchSkipStrategy();
        NFAState state = nfa.createInitialNFAState();
        SharedBuffer<String> buffer =
                new SharedBuffer<>(store(), StringSerializer.INSTANCE, SharedBufferCacheConfig.of(new Configuration()));
        ArrayNode out = JSON.createArrayNode();
        long last = Long.MIN_VALUE;
        for (JsonNode event : given.get("events")) {
            long time = event.get("ts").asLong();
            if (time != last) {
                advance(nfa, state, buffer, skip, time, out);
                last = time;
            }
            try (SharedBufferAccessor<String> accessor = buffer.getAccessor()) {
                for (Map<String, List<String>> match :
                        nfa.process(accessor, state, event.toString(), time, skip, () -> 0L)) {
                    out.add(JSON.createArrayNode().add("match").add(plain(match)));
                }
            }
        }
        advance(nfa, state, buffer, skip, given.get("end").asLong(), out);
        buffer.releaseCacheStatisticsTimer();
        return out;
    }

    static void advance(
            NFA<String> nfa, NFAState state, SharedBuffer<String> buffer, AfterMatchSkipStrategy skip, long time, ArrayNode out)
            throws Exception {
        try (SharedBufferAccessor<String> accessor = buffer.getAccessor()) {
            Tuple2<Collection<Map<String, List<String>>>, Collection<Tuple2<Map<String, List<String>>, Long>>> found =
                    nfa.advanceTime(accessor, state, time, skip);
            for (Map<String, List<String>> match : found.f0) {
                out.add(JSON.createArrayNode().add("match").add(plain(match)));
            }
            for (Tuple2<Map<String, List<String>>, Long> late : found.f1) {
                out.add(JSON.createArrayNode().add("timeout").add(plain(late.f0)).add(late.f1));
            }
        }
    }

    static ObjectNode plain(Map<String, List<String>> match) throws Exception {
        ObjectNode found = JSON.createObjectNode();
        for (Map.Entry<String, List<String>> entry : match.entrySet()) {
            ArrayNode ids = found.putArray(entry.getKey());
            for (String event : entry.getValue()) {
                ids.add(read(event).get("id").asInt());
            }
        }
        return found;
    }

    // ------------------------------------------------------------------------------------------------ patterns

    static AfterMatchSkipStrategy skip(JsonNode data) {
        if (data == null) {
            return AfterMatchSkipStrategy.noSkip();
        }
        boolean strict = data.has("throw_exception_on_miss");
        String to = data.has("pattern") ? data.get("pattern").asText() : null;
        switch (data.get("strategy").asText()) {
            case "SKIP_TO_NEXT":
                return AfterMatchSkipStrategy.skipToNext();
            case "SKIP_PAST_LAST_EVENT":
                return AfterMatchSkipStrategy.skipPastLastEvent();
            case "SKIP_TO_FIRST":
                return strict
                        ? AfterMatchSkipStrategy.skipToFirst(to).throwExceptionOnMiss()
                        : AfterMatchSkipStrategy.skipToFirst(to);
            case "SKIP_TO_LAST":
                return strict
                        ? AfterMatchSkipStrategy.skipToLast(to).throwExceptionOnMiss()
                        : AfterMatchSkipStrategy.skipToLast(to);
            default:
                return AfterMatchSkipStrategy.noSkip();
        }
    }

    static Pattern<String, String> pattern(JsonNode data) {
        return steps(data.get("steps"), skip(data.get("skip")));
    }

    @SuppressWarnings("unchecked")
    static Pattern<String, String> steps(JsonNode data, AfterMatchSkipStrategy skip) {
        Pattern<String, String> found = null;
        for (JsonNode step : data) {
            Pattern<String, String> group =
                    step.has("group") ? steps(step.get("group"), AfterMatchSkipStrategy.noSkip()) : null;
            String name = step.has("name") ? step.get("name").asText() : null;
            if (found == null) {
                found = group != null ? Pattern.begin(group, skip) : Pattern.begin(name, skip);
            } else {
                switch (step.get("contiguity").asText()) {
                    case "relaxed":
                        found = group != null ? found.followedBy(group) : found.followedBy(name);
                        break;
                    case "any":
                        found = group != null ? found.followedByAny(group) : found.followedByAny(name);
                        break;
                    case "not_next":
                        found = found.notNext(name);
                        break;
                    case "not_followed_by":
                        found = found.notFollowedBy(name);
                        break;
                    default:
                        found = group != null ? found.next(group) : found.next(name);
                }
            }
            options(found, step);
        }
        return found;
    }

    static void options(Pattern<String, String> step, JsonNode data) {
        if (data.has("where")) {
            step.where(new Condition(data.get("where")));
        }
        if (data.has("times")) {
            JsonNode times = data.get("times");
            Duration gap = times.has("window_ms") ? Duration.ofMillis(times.get("window_ms").asLong()) : null;
            int least = times.get("from").asInt();
            if (!times.has("to") || times.get("to").asInt(-1) == least) {
                step.times(least, gap);
            } else if (times.get("to").isNull()) {
                step.timesOrMore(least, gap);
            } else {
                step.times(least, times.get("to").asInt(), gap);
            }
        }
        if (data.has("inner")) {
            if (data.get("inner").asText().equals("consecutive")) {
                step.consecutive();
            } else {
                step.allowCombinations();
            }
        }
        if (data.has("greedy")) {
            step.greedy();
        }
        if (data.has("optional")) {
            step.optional();
        }
        if (data.has("until")) {
            step.until(new Condition(data.get("until")));
        }
        if (data.has("within_ms")) {
            step.within(Duration.ofMillis(data.get("within_ms").asLong()));
        }
        if (data.has("within_previous_ms")) {
            step.within(Duration.ofMillis(data.get("within_previous_ms").asLong()), WithinType.PREVIOUS_AND_CURRENT);
        }
    }

    static class Condition extends IterativeCondition<String> {
        private final String text;

        Condition(JsonNode data) {
            text = data.toString();
        }

        @Override
        public boolean filter(String event, Context<String> context) throws Exception {
            return holds(read(text), read(event), context);
        }

        static boolean holds(JsonNode data, JsonNode event, Context<String> context) throws Exception {
            if (data.has("and")) {
                for (JsonNode part : data.get("and")) {
                    if (!holds(part, event, context)) {
                        return false;
                    }
                }
                return true;
            }
            if (data.has("or")) {
                for (JsonNode part : data.get("or")) {
                    if (holds(part, event, context)) {
                        return true;
                    }
                }
                return false;
            }
            if (data.has("not")) {
                return !holds(data.get("not"), event, context);
            }
            JsonNode field = event.get(data.get("field").asText());
            JsonNode value = data.get("value");
            if (value.isObject()) {
                value = earlier(value, context);
                if (value == null) {
                    return false;
                }
            }
            int order = field.isTextual() ? field.asText().compareTo(value.asText()) : Double.compare(field.asDouble(), value.asDouble());
            switch (data.get("op").asText()) {
                case "==":
                    return order == 0;
                case "!=":
                    return order != 0;
                case "<":
                    return order < 0;
                case "<=":
                    return order <= 0;
                case ">":
                    return order > 0;
                default:
                    return order >= 0;
            }
        }

        static JsonNode earlier(JsonNode data, Context<String> context) throws Exception {
            double sum = 0;
            double last = 0;
            int count = 0;
            for (String event : context.getEventsForPattern(data.get("of").asText())) {
                last = read(event).get(data.get("field").asText()).asDouble();
                sum += last;
                count++;
            }
            String function = data.get("function").asText();
            if (count == 0 && !function.equals("count")) {
                return null;
            }
            double found = function.equals("sum") ? sum : function.equals("count") ? count : function.equals("avg") ? sum / count : last;
            double factor = data.has("factor") ? data.get("factor").asDouble() : 1;
            return JSON.getNodeFactory().numberNode(found * factor);
        }
    }

    // -------------------------------------------------------------------------------------------------- state

    /** Keyed state of one key, in memory: all that the shared buffer asks for. */
    static KeyedStateStore store() {
        return proxy(KeyedStateStore.class, (method, args) -> {
            switch (method) {
                case "getState":
                    return value();
                case "getMapState":
                    return map();
                default:
                    throw new UnsupportedOperationException(method);
            }
        });
    }

    static ValueState<Object> value() {
        Object[] held = new Object[1];
        return proxy(ValueState.class, (method, args) -> {
            switch (method) {
                case "value":
                    return held[0];
                case "update":
                    held[0] = args[0];
                    return null;
                default:
                    held[0] = null;
                    return null;
            }
        });
    }

    static MapState<Object, Object> map() {
        Map<Object, Object> held = new HashMap<>();
        return proxy(MapState.class, (method, args) -> {
            switch (method) {
                case "get":
                    return held.get(args[0]);
                case "put":
                    held.put(args[0], args[1]);
                    return null;
                case "putAll":
                    held.putAll((Map<?, ?>) args[0]);
                    return null;
                case "remove":
                    held.remove(args[0]);
                    return null;
                case "contains":
                    return held.containsKey(args[0]);
                case "entries":
                    return held.entrySet();
                case "keys":
                    return held.keySet();
                case "values":
                    return held.values();
                case "iterator":
                    return held.entrySet().iterator();
                case "isEmpty":
                    return held.isEmpty();
                case "clear":
                    held.clear();
                    return null;
                default:
                    throw new UnsupportedOperationException(method);
            }
        });
    }

    interface Answer {
        Object to(String method, Object[] args) throws Throwable;
    }

    @SuppressWarnings("unchecked")
    static <T> T proxy(Class<?> kind, Answer answer) {
        return (T) java.lang.reflect.Proxy.newProxyInstance(
                Recorder.class.getClassLoader(), new Class<?>[] {kind}, (self, method, args) -> answer.to(method.getName(), args));
    }
}
