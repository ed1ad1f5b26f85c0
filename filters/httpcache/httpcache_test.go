package httpcache

import (
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"testing"

	"sluice.dev/sluice/platform/limits/growth"
)

const now = 1_800_000_000

var rule = &Rule{Key: "r@1", Route: "r", Digest: Digest{1}, TTL: 60, MaxBytes: 1000, Vary: []string{"accept", "x-lang"}}

// ask is what a GET of /a with more headers asks.
func ask(r *Rule, more ...[2]string) Ask {
	all := [][2]string{{":method", "GET"}, {":authority", "gw"}, {":path", "/a?x=1&y=2"}, {"id", "v2;u=shop;a=acct_1;k=key_1;p=pro;s=a:b;e=9;m=00"}}
	for _, m := range more {
		if i := slices.IndexFunc(all, func(h [2]string) bool { return h[0] == m[0] }); i >= 0 && m[0] != "accept" {
			all[i] = m
		} else {
			all = append(all, m)
		}
	}
	return r.Ask(all, "id", true)
}

func TestRulesComeOutAsTheyWentIn(t *testing.T) {
	t.Parallel()
	other := *rule
	other.Key, other.Per = "s@1", PerKey
	got, ok := Parse(Append(nil, []Rule{*rule, other}))
	if !ok || !reflect.DeepEqual(got, map[string]*Rule{"r@1": rule, "s@1": &other}) {
		t.Errorf("%v %+v", ok, got)
	}
	if _, ok := Parse(Append(nil, []Rule{*rule, *rule})); ok {
		t.Error("a key has two rules")
	}
}

// Nothing tells two callers' answers apart but what the edge has signed, and all of that
// does; and whatever else may make answers differ makes keys differ.
func TestKeysTellAnswersApart(t *testing.T) {
	t.Parallel()
	identity := func(a, k, p, s, e string) [2]string {
		return [2]string{"id", "v2;u=shop;a=" + a + ";k=" + k + ";p=" + p + ";s=" + s + ";e=" + e + ";m=" + e}
	}
	perKey, perNobody, changed := *rule, *rule, *rule
	perKey.Per, perNobody.Per, changed.Digest = PerKey, PerNobody, Digest{2}
	first := ask(rule)
	for name, c := range map[string]struct {
		ask  Ask
		same bool
	}{
		"the same":           {ask(rule), true},
		"HEAD":               {ask(rule, [2]string{":method", "HEAD"}), true},
		"another header":     {ask(rule, [2]string{"user-agent", "x"}), true},
		"signed anew":        {ask(rule, identity("acct_1", "key_1", "pro", "a:b", "10")), true},
		"another key":        {ask(rule, identity("acct_1", "key_2", "pro", "a:b", "9")), true},
		"another account":    {ask(rule, identity("acct_2", "key_1", "pro", "a:b", "9")), false},
		"another plan":       {ask(rule, identity("acct_1", "key_1", "free", "a:b", "9")), false},
		"other scopes":       {ask(rule, identity("acct_1", "key_1", "pro", "a:b,c:d", "9")), false},
		"nobody":             {ask(rule, [2]string{"id", ""}), false},
		"another query":      {ask(rule, [2]string{":path", "/a?x=1"}), false},
		"the query reversed": {ask(rule, [2]string{":path", "/a?y=2&x=1"}), false},
		"another host":       {ask(rule, [2]string{":authority", "other"}), false},
		"another format":     {ask(rule, [2]string{"accept", "text/csv"}), false},
		"host and path":      {ask(rule, [2]string{":authority", "gw/"}, [2]string{":path", "a?x=1&y=2"}), false},
		"another rule":       {ask(&changed), false},
		"by key":             {ask(&perKey), false},
		"of nobody":          {ask(&perNobody), false},
	} {
		if c.ask.Use != Lookup || (c.ask.Key == first.Key) != c.same {
			t.Errorf("%s: %v, the same: %v", name, c.ask.Use, c.ask.Key == first.Key)
		}
	}
	if ask(&perKey).Key == ask(&perKey, identity("acct_1", "key_2", "pro", "a:b", "9")).Key {
		t.Error("two keys share answers")
	}
	if ask(&perNobody).Key != ask(&perNobody, identity("acct_2", "key_2", "free", "", "9")).Key || ask(&perNobody).Key == ask(&perNobody, [2]string{"id", ""}).Key {
		t.Error("answers that are nobody's are told apart by who is known, and by nothing else")
	}
	if a, b := ask(rule), ask(rule, identity("acct_2", "key_1", "pro", "a:b", "9")); a.Share == b.Share || a.Share != ask(&perKey).Share {
		t.Error("shares are not the accounts'")
	}
}

func TestWhichRequestsAreForTheCache(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		header [2]string
		want   Use
	}{
		"POST": {[2]string{":method", "POST"}, Bypass}, "a range": {[2]string{"range", "bytes=0-1"}, Bypass}, "a cookie": {[2]string{"cookie", "a=b"}, Bypass},
		"a condition to change": {[2]string{"if-match", `"a"`}, Bypass}, "a payment": {[2]string{"x-payment", "a"}, Bypass},
		"whose request is paid": {[2]string{"id", "v2;u=shop;a=;k=pay_0x1;p=;s=;e=9;m=0"}, Bypass},
		"no-store":              {[2]string{"cache-control", "max-age=9, no-store"}, Bypass}, "no-cache": {[2]string{"cache-control", "No-Cache"}, Refresh}, "max-age=0": {[2]string{"cache-control", "max-age=0"}, Refresh},
		"pragma": {[2]string{"pragma", "no-cache"}, Refresh}, "a condition": {[2]string{"if-none-match", `"a"`}, Lookup}, "a credential that was judged": {[2]string{"authorization", "Bearer x"}, Lookup},
		"only-if-cached": {[2]string{"cache-control", "only-if-cached"}, Bypass},
	} {
		if got := ask(rule, c.header).Use; got != c.want {
			t.Errorf("%s: %v, want %v", name, got, c.want)
		}
	}
	if got := ask(rule, [2]string{"id", ""}, [2]string{"authorization", "Bearer x"}).Use; got != Bypass {
		t.Errorf("a credential that nobody has judged: %v", got)
	}
	if got := rule.Ask([][2]string{{":method", "GET"}, {":path", "/"}}, "id", false).Use; got != Bypass {
		t.Errorf("a request with a body: %v", got)
	}
}

// answer is what becomes of an answer of 200 with more headers: for how long it is kept, 0: not.
func answer(r *Rule, a Ask, more ...[2]string) uint32 {
	s, ok := r.Answer(a, append([][2]string{{":status", "200"}, {"content-type", "text/plain"}}, more...), now)
	if !ok {
		return 0
	}
	return s.For
}

func TestWhichAnswersAreKept(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		headers [][2]string
		want    uint32
	}{
		"that say nothing": {nil, 60}, "for a shorter time": {[][2]string{{"cache-control", "max-age=9"}}, 9}, "for a longer time": {[][2]string{{"cache-control", "max-age=900"}}, 60},
		"for shared caches": {[][2]string{{"cache-control", "max-age=9, s-maxage=20"}}, 20}, "on two lines": {[][2]string{{"cache-control", "public"}, {"cache-control", "max-age=7"}}, 7},
		"twice": {[][2]string{{"cache-control", "max-age=7,max-age=5"}}, 5}, "of no time": {[][2]string{{"cache-control", "max-age=0"}}, 0}, "of an age": {[][2]string{{"cache-control", "max-age=50"}, {"age", "20"}}, 30},
		"too old": {[][2]string{{"age", "60"}}, 0}, "of a bad age": {[][2]string{{"cache-control", "max-age=x"}}, 0}, "of a negative age": {[][2]string{{"cache-control", "max-age=-1"}}, 0},
		"private": {[][2]string{{"cache-control", "Private"}}, 0}, "private in a field": {[][2]string{{"cache-control", `private="x-a, x-b", max-age=9`}}, 0}, "no-store": {[][2]string{{"cache-control", "no-store"}}, 0},
		"no-cache": {[][2]string{{"cache-control", "no-cache"}}, 0}, "no-store in quotes": {[][2]string{{"cache-control", `ext="a, no-store", max-age=9`}}, 9},
		"with a cookie": {[][2]string{{"set-cookie", "a=b"}}, 0}, "of another status": {[][2]string{{":status", "500"}}, 0}, "a part": {[][2]string{{"content-range", "bytes 0-1/2"}}, 0},
		"that vary by what is told apart": {[][2]string{{"vary", "Accept, X-Lang"}}, 60}, "that vary by more": {[][2]string{{"vary", "Accept, Cookie"}}, 0}, "that vary by all": {[][2]string{{"vary", "*"}}, 0},
		"too large": {[][2]string{{"content-length", "1001"}}, 0}, "that end": {[][2]string{{"expires", "Fri, 15 Jan 2027 08:00:10 GMT"}}, 10}, "that have ended": {[][2]string{{"expires", "Fri, 15 Jan 2027 07:00:00 GMT"}}, 0},
		"of a bad end": {[][2]string{{"expires", "0"}}, 0}, "of long headers": {[][2]string{{"x-a", strings.Repeat("a", maxHeaders)}}, 0},
	} {
		headers := c.headers
		if len(headers) > 0 && headers[0][0] == ":status" {
			if _, ok := rule.Answer(ask(rule), [][2]string{headers[0], {"content-type", "a"}}, now); ok {
				t.Error(name)
			}
			continue
		}
		if got := answer(rule, ask(rule), headers...); got != c.want {
			t.Errorf("%s: %d, want %d", name, got, c.want)
		}
	}
	nobody := *rule
	nobody.Per = PerNobody
	for name, c := range map[string]struct {
		a    Ask
		said string
		want uint32
	}{"of a caller": {ask(&nobody), "max-age=9", 0}, "public": {ask(&nobody), "public, max-age=9", 9}, "shared": {ask(&nobody), "s-maxage=9", 9}, "of nobody": {ask(&nobody, [2]string{"id", ""}), "max-age=9", 9}} {
		if got := answer(&nobody, c.a, [2]string{"cache-control", c.said}); got != c.want {
			t.Errorf("nobody's answer %s: %d, want %d", name, got, c.want)
		}
	}
	s, _ := rule.Answer(ask(rule), [][2]string{{":status", "200"}, {"content-type", "a"}, {"x-request-id", "1"}, {"x-ratelimit-limit", "1"}, {"ratelimit", "1"}, {"age", "1"}, {"content-length", "1"}, {"connection", "close"}, {"etag", "1"}}, now)
	if fmt.Sprint(s.Headers) != "[[content-type a] [etag 1]]" {
		t.Errorf("kept %v", s.Headers)
	}
}

func TestReplies(t *testing.T) {
	t.Parallel()
	e := Entry{Stored: now * 1000, Age: 3, Status: 200, Headers: [][2]string{{"content-type", "a"}, {"etag", `W/"v,1"`}, {"last-modified", "yesterday"}}, Body: []byte("body")}
	for name, c := range map[string]struct {
		header [2]string
		want   string
	}{
		"whole": {[2]string{"x", "y"}, `200 [[content-type a] [etag W/"v,1"] [last-modified yesterday] [age 8]] body`},
		"known": {[2]string{"if-none-match", `"a", "v,1"`}, `304 [[etag W/"v,1"] [last-modified yesterday] [age 8]] `},
		"any":   {[2]string{"if-none-match", "*"}, `304 [[etag W/"v,1"] [last-modified yesterday] [age 8]] `},
		"other": {[2]string{"if-none-match", `"v", "1"`}, `200 [[content-type a] [etag W/"v,1"] [last-modified yesterday] [age 8]] body`},
		"since": {[2]string{"if-modified-since", "yesterday"}, `304 [[etag W/"v,1"] [last-modified yesterday] [age 8]] `},
	} {
		status, headers, body := e.Reply(ask(rule, c.header), (now+5)*1000+500)
		if got := fmt.Sprintf("%d %v %s", status, headers, body); got != c.want {
			t.Errorf("%s: %s, want %s", name, got, c.want)
		}
	}
}

func FuzzParse(f *testing.F) {
	f.Add(Append(nil, []Rule{*rule}))
	f.Fuzz(func(t *testing.T, b []byte) {
		growth.Linear(t, len(b), 64, 4<<10, func() { Parse(b) })
		rules, ok := Parse(b)
		if !ok {
			return
		}
		var list []Rule
		for _, key := range slices.Sorted(maps.Keys(rules)) {
			list = append(list, *rules[key])
		}
		if again, ok := Parse(Append(nil, list)); !ok || !reflect.DeepEqual(rules, again) {
			t.Error("they differ when written again")
		}
	})
}

func FuzzParseEntry(f *testing.F) {
	f.Add(entry(1, 2, 3).Append(nil))
	f.Fuzz(func(t *testing.T, b []byte) {
		growth.Linear(t, len(b), 32, 16<<10, func() { ParseEntry(b) })
		if e, ok := ParseEntry(b); ok {
			if again, ok := ParseEntry(e.Append(nil)); !ok || fmt.Sprint(again) != fmt.Sprint(e) {
				t.Error("it differs when written again")
			}
		}
	})
}

// What two headers of an answer and two of a request say, as a client and a product may
// choose them, costs no more than their bytes.
func FuzzHeaders(f *testing.F) {
	f.Add("max-age=5, no-cache", "Accept", `W/"a", "b"`, "v2;a=acct_1;k=k")
	f.Fuzz(func(t *testing.T, cacheControl, vary, noneMatch, identity string) {
		size := len(cacheControl) + len(vary) + len(noneMatch) + len(identity)
		growth.Linear(t, size, 64, 16<<10, func() {
			a := ask(rule, [2]string{"if-none-match", noneMatch}, [2]string{"id", identity})
			s, ok := rule.Answer(a, [][2]string{{":status", "200"}, {"content-type", "a"}, {"cache-control", cacheControl}, {"vary", vary}}, now)
			if ok && (s.For == 0 || s.For > rule.TTL) {
				t.Errorf("%q is kept for %d", cacheControl, s.For)
			}
			Entry{Headers: [][2]string{{"etag", `"a"`}}}.isStillGood(a)
		})
	})
}
