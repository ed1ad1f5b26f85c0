package ratesync

import (
	"testing"

	"sluice.dev/sluice/filters/limits/ratelimit"
	"sluice.dev/sluice/filters/limits/sharedlimit"
)

const second = int64(1_800_000_000)

// counted is a report of n requests of an account in one second.
func counted(told int64, boot uint64, account uint64, at int64, n uint32) sharedlimit.Report {
	e := sharedlimit.Entry{ID: ratelimit.AccountID(account, 0), Others: ratelimit.Others{Newest: at, Burst: n}}
	e.Slots[at%ratelimit.Seconds] = n
	return sharedlimit.Report{Told: uint64(told), Boot: boot, Entries: []sharedlimit.Entry{e}}
}

// hears fails the test unless an edge is told that others have counted n.
func (t *Table) hears(tb testing.TB, name string, now int64, n uint64) {
	tb.Helper()
	got := uint64(0)
	for _, e := range t.Answer(name, now).Entries {
		got += sum(&e.Others)
	}
	if got != n {
		tb.Errorf("%s hears of %d, want %d", name, got, n)
	}
}

func TestNothingCountsTwice(t *testing.T) {
	t.Parallel()
	tab, now := NewTable(), second*1000
	r := counted(now, 1, 7, second, 10)
	if !tab.Take("a", r, now) || tab.Take("a", r, now) {
		t.Error("a report is news once")
	}
	tab.hears(t, "b", now, 10)
	tab.hears(t, "a", now, 0)
	if tab.Take("a", counted(now-1, 1, 7, second, 99), now) {
		t.Error("an older report was taken")
	}
	tab.Take("a", counted(now+1, 1, 7, second, 12), now+1)
	tab.hears(t, "b", now+1, 12)
	tab.Take("a", counted(now+2, 1, 7, second, 5), now+2) // it lost the window, and what it let through before
	tab.hears(t, "b", now+2, 12)
	tab.Take("a", counted(now+3, 2, 7, second, 3), now+3) // a new start
	tab.hears(t, "b", now+3, 15)
	tab.hears(t, "a", now+3, 12)
	tab.Take("b", counted(now+4, 1, 7, second, 100), now+4)
	tab.hears(t, "a", now+4, 112)
	tab.hears(t, "c", now+4, 115)
	tab.hears(t, "c", now+60_000, 0)
}

func TestWhoIsOfTheFleet(t *testing.T) {
	t.Parallel()
	tab, now := NewTable(), second*1000
	for i, name := range []string{"a", "b", "c"} {
		tab.Take(name, sharedlimit.Report{Told: uint64(now), Boot: 1}, now+int64(i)*1000)
	}
	for at, want := range map[int64]uint32{2000: 3, 3500: 2, 4500: 1} {
		if got := tab.Answer("c", now+at).Edges; got != want {
			t.Errorf("after %d ms: %d edges, want %d", at, got, want)
		}
	}
	if tab.Take("d", sharedlimit.Report{Told: uint64(now + maxSkew + 1)}, now) || tab.Take("d", sharedlimit.Report{Told: uint64(now - window - 1)}, now) {
		t.Error("an edge whose clock is wrong was believed")
	}
}

// Whatever edges report, the table holds a bounded number of windows, and after
// a minute of silence none; no edges once they are known dead.
func TestMemoryIsBounded(t *testing.T) {
	t.Parallel()
	tab, now := NewTable(), second*1000
	for i := range maxEdges + 10 {
		name := string(rune('a'+i%26)) + string(rune(i))
		r := sharedlimit.Report{Told: uint64(now), Boot: 1}
		for j := range uint64(20) {
			r.Entries = append(r.Entries, counted(now, 1, uint64(i)<<8|j, second, 1).Entries...)
		}
		tab.Take(name, r, now)
	}
	if len(tab.edges) > maxEdges || tab.windows != maxWindows || len(tab.totals) > maxWindows {
		t.Errorf("%d edges, %d windows, %d totals", len(tab.edges), tab.windows, len(tab.totals))
	}
	if a := tab.Answer("nobody", now); len(a.Entries) != sharedlimit.MaxEntries {
		t.Errorf("an answer of %d entries", len(a.Entries))
	}
	busy := tab.Busy()
	tab.Answer("nobody", now+window+1000)
	if tab.windows+len(tab.totals)+len(tab.hot) > 0 || tab.Busy() == busy {
		t.Errorf("left: %d windows, %d totals, %d hot", tab.windows, len(tab.totals), len(tab.hot))
	}
	if tab.Answer("nobody", now+sharedlimit.DeadMillis+1); len(tab.edges) > 0 {
		t.Errorf("left: %d edges", len(tab.edges))
	}
}
