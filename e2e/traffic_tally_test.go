package e2e

import (
	"errors"
	"fmt"
	"maps"
	"net/http"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// tally is what the metrics of an edge should show, by name and labels.
type tally map[string]float64

func (y tally) request(product, route, method, class, reason string) {
	y[fmt.Sprintf("requests %s %s %s %s", product, route, method, class)]++
	if reason != "" {
		y[fmt.Sprintf("refused %s %s %s", product, route, reason)]++
	}
}

var sample = regexp.MustCompile(`(?m)^sluice_edge_(requests|refused)_total\{(.*)\} (\S+)$`)

// shown is what an edge's agent shows of the routes in want.
func shown(text string) tally {
	all := tally{}
	for _, m := range sample.FindAllStringSubmatch(text, -1) {
		l := map[string]string{}
		for _, pair := range regexp.MustCompile(`(\w+)="([^"]*)"`).FindAllStringSubmatch(m[2], -1) {
			l[pair[1]] = pair[2]
		}
		name := fmt.Sprintf("%s %s %s %s", m[1], l["product"], l["route"], l["reason"])
		if m[1] == "requests" {
			name = fmt.Sprintf("%s %s %s %s %s", m[1], l["product"], l["route"], l["method"], l["status_class"])
		}
		all[name], _ = strconv.ParseFloat(m[3], 64)
	}
	return all
}

// agrees waits until the agent shows what was counted.
func (c *shopper) agrees(t testing.TB, when string) (text string) {
	t.Helper()
	eventually(t, "the metrics agree "+when, func() error {
		r, err := try(http.MethodGet, "http://"+c.env["SLUICE_EDGE_METRICS_ADDR"]+"/metrics", "", nil)
		if err != nil {
			return err
		}
		text = r.body
		got := shown(text)
		maps.DeleteFunc(got, func(name string, _ float64) bool {
			return !strings.Contains(name, " shop") && !strings.Contains(name, " closed") && !strings.Contains(name, " unmapped") && !strings.Contains(name, " absent") && !strings.Contains(name, "(")
		})
		var wrong []string
		for _, name := range slices.Sorted(maps.Keys(union(got, c.want))) {
			if got[name] != c.want[name] {
				wrong = append(wrong, fmt.Sprintf("%s: %v, want %v", name, got[name], c.want[name]))
			}
		}
		if len(wrong) > 0 {
			return errors.New(strings.Join(wrong, "\n"))
		}
		return nil
	})
	return text
}

func union(a, b tally) tally {
	all := maps.Clone(a)
	maps.Copy(all, b)
	return all
}

// line is the value of one line of metrics; -1: it is not there.
func line(t testing.TB, text, name string) float64 {
	t.Helper()
	_, rest, ok := strings.Cut(text, "\n"+name+" ")
	if !ok {
		return -1
	}
	value, _, _ := strings.Cut(rest, "\n")
	v, err := strconv.ParseFloat(value, 64)
	if err != nil {
		t.Fatal(name, err)
	}
	return v
}

// histograms checks how long requests took, by what the shop is known to take.
func (c *shopper) histograms(t testing.TB, text string) {
	t.Helper()
	for labels, n := range map[string]float64{
		`product="shop",route="shop.read",method="GET",status_class="2xx"`: c.want["requests shop shop.read GET 2xx"],
		`product="shop",route="shop.read",method="GET",status_class="4xx"`: 2, // of 8 or more: the others were refused
		`product="shop",route="shop.read",method="GET",status_class="5xx"`: 4,
		`product="shop",route="shop.hang",method="GET",status_class="5xx"`: 1,
	} {
		name := "sluice_edge_request_duration_seconds"
		labels := sortedLabels(labels)
		if got := line(t, text, name+"_count{"+labels+"}"); got != n {
			t.Errorf("%s: %v requests, want %v", labels, got, n)
		}
		if got := line(t, text, name+`_bucket{`+labels+`,le="+Inf"}`); got != n {
			t.Errorf("%s: %v requests in all buckets, want %v", labels, got, n)
		}
	}
	served := sortedLabels(`product="shop",route="shop.read",method="GET",status_class="2xx"`)
	all := line(t, text, "sluice_edge_request_duration_seconds_count{"+served+"}")
	if below := line(t, text, `sluice_edge_request_duration_seconds_bucket{`+served+`,le="0.3"}`); below < 0 || below > all-1 {
		t.Errorf("%v of %v took less than 0.3 s, of which one takes %v", below, all, slowness)
	}
	if sum := line(t, text, "sluice_edge_request_duration_seconds_sum{"+served+"}"); sum < slowness.Seconds() || sum > patience.Seconds() {
		t.Errorf("together %v s", sum)
	}
	// What the shop answered: not the one that hung, nor the one that was left.
	answered := 0.0
	for name, n := range c.want {
		if strings.HasPrefix(name, "requests shop ") && !strings.HasSuffix(name, " none") {
			answered += n
		} else if strings.HasPrefix(name, "refused shop ") {
			answered -= n
		}
	}
	if got := line(t, text, `sluice_edge_response_start_seconds_count{product="shop"}`); got != answered {
		t.Errorf("the shop began %v answers, want %v", got, answered)
	}
	if got := line(t, text, `sluice_edge_request_bytes_total{product="shop",route="shop.any"}`); got != 2*float64(len(`"abc"`)) {
		t.Errorf("%v bytes of bodies were sent", got)
	}
	if got := line(t, text, `sluice_edge_response_bytes_total{product="shop",route="shop.any"}`); got != 4*5 {
		t.Errorf("%v bytes of bodies were answered", got)
	}
}

// sortedLabels has labels in the order in which they are shown.
func sortedLabels(labels string) string {
	list := strings.Split(labels, ",")
	slices.Sort(list)
	return strings.Join(list, ",")
}
