package token

import (
	"fmt"
	"testing"

	"sluice.dev/sluice/filters/credentials/keytable"
	"sluice.dev/sluice/filters/decision"
)

// ask finds a token and judges it.
func ask(table *Table, e *edge, text string, at int64) (Bearer, decision.Decision) {
	return table.Check(judgedBy, e, table.Find(text), at)
}

func TestSignatureIsCheckedOnce(t *testing.T) {
	t.Parallel()
	var table Table
	e, text := newEdge(), compact(ownHeader, own, "ES256")
	for _, c := range []struct {
		after    int64
		verified int
	}{{0, 1}, {1, 1}, {belief - 1, 1}, {belief, 2}, {belief + 1, 2}} {
		if _, d := ask(&table, e, text, now+c.after); !d.OK() || e.verified != c.verified {
			t.Fatalf("after %d s: %q, %d signatures checked, want %d", c.after, d.Code, e.verified, c.verified)
		}
	}
}

func TestEndOfToken(t *testing.T) {
	t.Parallel()
	var table Table
	e, text := newEdge(), compact(ownHeader, own.with("exp", now+10), "ES256")
	for at, want := range map[int64]decision.Code{0: "", 9: "", 10: decision.TokenExpired, 1000: decision.TokenExpired} {
		if _, d := ask(&table, e, text, now+at); d.Code != want {
			t.Errorf("after %d s: %q, want %q", at, d.Code, want)
		}
	}
}

func TestRevocationCountsAtOnce(t *testing.T) {
	t.Parallel()
	var table Table
	e, text := newEdge(), compact(ownHeader, own, "ES256")
	if _, d := ask(&table, e, text, now); !d.OK() {
		t.Fatal(d)
	}
	e.put(keytable.Record{Tag: keytable.TagOfToken("sess_1"), Kind: keytable.KindToken})
	if _, d := ask(&table, e, text, now); d.Code != decision.InvalidToken {
		t.Fatalf("a revoked token that was good before: %q", d.Code)
	}
	if _, d := ask(new(Table), e, text, now); d.Code != decision.InvalidToken {
		t.Fatalf("a revoked token: %q", d.Code)
	}
}

// A token is proven once it was found good, for as long as nothing else says so.
func TestProven(t *testing.T) {
	t.Parallel()
	var table Table
	e, text := newEdge(), compact(ownHeader, own.with("exp", now+2*belief), "ES256")
	proven := func(want bool, what string) {
		t.Helper()
		if table.Find(text).Proven != want {
			t.Error(what)
		}
	}
	proven(false, "before it is judged")
	e.loading = true
	ask(&table, e, text, now)
	proven(false, "while records load")
	e.loading = false
	ask(&table, e, text, now)
	proven(true, "found good")
	like := text[:len(text)/2] + "A" + text[len(text)/2+1:]
	if table.Find(like).Proven || table.Find("").Proven || table.Find(text[1:]).Proven || table.Find("x"+text).Proven {
		t.Error("a text that is like it is proven too")
	}
	part := keytable.Parts(keytable.TagOfIssuerKey(ours, "es"))[1]
	kept := e.records[part]
	delete(e.records, part)
	if _, d := ask(&table, e, text, now+belief); d.Code != decision.EdgeNotReady {
		t.Fatal(d)
	}
	proven(true, "while its key arrives")
	e.records[part] = kept
	if _, d := ask(&table, e, text, now+2*belief); d.Code != decision.TokenExpired {
		t.Fatal(d)
	}
	proven(false, "when it has ended")
}

func TestKeyThatIsWithdrawn(t *testing.T) {
	t.Parallel()
	var table Table
	e, text := newEdge(), compact(ownHeader, own, "ES256")
	if _, d := ask(&table, e, text, now); !d.OK() {
		t.Fatal(d)
	}
	for _, tag := range keytable.Parts(keytable.TagOfIssuerKey(ours, "es")) {
		delete(e.records, tag)
	}
	if _, d := ask(&table, e, text, now+belief); d.Code != decision.InvalidToken {
		t.Fatalf("%q", d.Code)
	}
}

func TestClosedUntilItKnows(t *testing.T) {
	t.Parallel()
	var table Table
	e, text := newEdge(), compact(ownHeader, own, "ES256")
	e.loading = true
	if _, d := ask(&table, e, text, now); d.Code != decision.EdgeNotReady || d.RetryAfter == 0 {
		t.Fatalf("while records load, a revocation may be among them: %+v", d)
	}
	e.loading = false
	if _, d := ask(&table, e, text, now); !d.OK() {
		t.Fatal(d)
	}
}

func TestKeyThatIsJustArriving(t *testing.T) {
	t.Parallel()
	e := newEdge()
	delete(e.records, keytable.Parts(keytable.TagOfIssuerKey(ours, "es"))[1])
	if _, d := ask(new(Table), e, compact(ownHeader, own, "ES256"), now); d.Code != decision.EdgeNotReady || d.RetryAfter == 0 {
		t.Fatalf("%+v", d)
	}
}

// Many tokens share the table's places, and none is ever taken for another.
func TestTokensPushEachOtherOut(t *testing.T) {
	t.Parallel()
	var table Table
	e := newEdge()
	var texts [600]string
	for i := range texts {
		texts[i] = compact(ownHeader, own.with("jti", fmt.Sprint("sess_", i)), "ES256")
	}
	for round := range 2 {
		for i, text := range texts {
			if b, d := ask(&table, e, text, now); !d.OK() || b.Credential != fmt.Sprint("sess_", i) {
				t.Fatalf("round %d, token %d: %q %+v", round, i, d.Code, b)
			}
		}
	}
}

func TestForgedTokensPushNobodyOut(t *testing.T) {
	t.Parallel()
	var table Table
	e, text := newEdge(), compact(ownHeader, own, "ES256")
	ask(&table, e, text, now)
	for i := range 600 {
		ask(&table, e, compact(ownHeader, own.with("jti", fmt.Sprint("f", i)), "none"), now)
	}
	before := e.verified
	if _, d := ask(&table, e, text, now); !d.OK() || e.verified != before {
		t.Fatalf("%q, checked again %d times", d.Code, e.verified-before)
	}
}
