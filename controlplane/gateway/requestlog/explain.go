package requestlog

import (
	"fmt"
	"strings"
	"time"

	"sluice.dev/sluice/filters/decision"
	"sluice.dev/sluice/filters/edgeapi"
)

// viaUpstream are the response code details of an answer that came from the upstream.
const viaUpstream = "via_upstream"

// flagMeanings are Envoy's response flags in words, in the order in which the most
// telling one is looked for.
var flagMeanings = [][2]string{
	{"UH", "no upstream of %s is healthy"},
	{"UF", "the connection to %s failed"},
	{"UT", "%s did not answer within the route's timeout"},
	{"UPE", "%s answered with something that is not HTTP"},
	{"UC", "%s closed the connection before it had answered"},
	{"UR", "%s reset the request"},
	{"UO", "%s has as many requests or connections as its circuit breaker allows"},
	{"URX", "%s failed every attempt"},
	{"SI", "nothing was sent for longer than the idle timeout"},
	{"DT", "the request took longer than it may"},
	{"OM", "the edge is overloaded"},
	{"NC", "the edge does not know the product %s yet"},
	{"DPE", "the client did not speak HTTP as it should"},
	{"DC", "the client closed the connection before it had the whole response"},
	{"LR", "the edge reset the request"},
}

// explain says in a sentence what became of a request, and in another what would have
// if all that its route asks were enforced.
func explain(r edgeapi.Request) string {
	if r.WouldRefuse == "" {
		return outcome(r)
	}
	text := outcome(r)
	r.Code, r.Reason = r.WouldRefuse, r.WouldReason
	return text + " It passed because its route has that in the shadow, or the edge would have refused it: " + refusal(r)
}

// outcome says what became of a request.
func outcome(r edgeapi.Request) string {
	product := "the upstream"
	if r.Product != "" {
		product = "product " + r.Product
	}
	if r.Status == 101 {
		return ended(r, product)
	}
	if r.Code != "" && flagOf(r.Flags) == "" {
		return "Refused at the edge: " + refusal(r)
	}
	if why := flagOf(r.Flags); why != "" {
		if strings.Contains(why, "%s") {
			why = fmt.Sprintf(why, product)
		}
		if r.Failure != "" {
			why += " (" + r.Failure + ")"
		}
		if r.Status == 0 {
			return strings.ToUpper(why[:1]) + why[1:] + "."
		}
		return fmt.Sprintf("The edge answered %d: %s.", r.Status, why)
	}
	switch {
	case r.Status == 0:
		return "There was no response."
	case r.Detail == viaUpstream && r.GRPC != nil:
		return fmt.Sprintf("%s answered grpc-status %s.", strings.ToUpper(product[:1])+product[1:], decision.GRPCName(*r.GRPC))
	case r.Detail == viaUpstream:
		return fmt.Sprintf("%s answered %d.", strings.ToUpper(product[:1])+product[1:], r.Status)
	}
	return fmt.Sprintf("The edge answered %d.", r.Status)
}

// ended says how a WebSocket ended: its answer was 101 in any case.
func ended(r edgeapi.Request, product string) string {
	why := "client and product ended it"
	switch flag := flagOf(r.Flags); {
	case strings.HasPrefix(r.Detail, edgeapi.EndedDetail):
		why = "the edge ended it, " + r.Code + ": " + strings.TrimSuffix(decision.Lookup(decision.Code(r.Code)).Message, ".")
	case r.Detail == maxDuration:
		why = "its lifetime was over"
	case strings.Contains(flag, "%s"):
		why = fmt.Sprintf(flag, product)
	case flag != "":
		why = flag
	}
	return fmt.Sprintf("A WebSocket that was open for %s: %s.", time.Duration(r.Timings.Total*1000).Round(time.Millisecond), why)
}

// maxDuration is what Envoy says of a stream whose lifetime is over.
const maxDuration = "max_duration_timeout"

// refusal says why the edge refused a request, or would have.
func refusal(r edgeapi.Request) string {
	text := strings.TrimSuffix(decision.Lookup(decision.Code(r.Code)).Message, ".")
	who := "the request"
	if r.Key != "" {
		who = r.Key
	}
	switch reason := r.Reason; {
	case strings.HasPrefix(reason, "scope ") && strings.Contains(reason, "expected: "):
		_, scope, _ := strings.Cut(reason, "expected: ")
		text = who + " lacks the scope " + scope
	case reason != "":
		text += ": " + reason
	}
	return r.Code + ", " + text + "."
}

// flagOf is what the most telling flag of a list means; "" for none.
func flagOf(flags string) string {
	list := strings.Split(flags, ",")
	for _, m := range flagMeanings {
		for _, f := range list {
			if f == m[0] {
				return m[1]
			}
		}
	}
	return ""
}
