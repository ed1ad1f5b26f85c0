package plan

import (
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"
)

var targets = Targets{
	Processes: []string{"controlplane-1", "worker-1", "edge-1"}, Edges: []string{"edge-1"}, Wires: []string{"edge-1>controlplane-1", "worker-1>postgres"},
	Disks: []string{"edge-1"}, Clocks: []string{"postgres"}, Certs: true, Standby: true,
}

func TestTheSameSeedBreaksTheSame(t *testing.T) {
	t.Parallel()
	one, two, other := Make(7, time.Minute, targets), Make(7, time.Minute, targets), Make(8, time.Minute, targets)
	if !reflect.DeepEqual(one, two) {
		t.Errorf("%v\n%v", one, two)
	}
	if reflect.DeepEqual(one, other) {
		t.Error("another seed gives the same faults")
	}
}

func TestFaultsFitIntoTheRun(t *testing.T) {
	t.Parallel()
	for seed := range uint64(50) {
		faults := Make(seed, time.Minute, targets)
		if len(faults) < 5 {
			t.Errorf("seed %d: only %d faults in a minute", seed, len(faults))
		}
		last := time.Duration(0)
		for _, f := range faults {
			if f.At < minPause || f.At < last || f.At+f.For > time.Minute-minPause {
				t.Errorf("seed %d: %v", seed, f)
			}
			last = f.At
		}
	}
}

// In ten minutes everything happens that can happen, and nothing else does.
func TestALongRunHasEveryKind(t *testing.T) {
	t.Parallel()
	had := map[Kind]bool{}
	for _, f := range Make(1, 10*time.Minute, targets) {
		had[f.Kind] = true
	}
	for _, k := range kinds(targets) {
		if !had[k] {
			t.Errorf("no %q", k)
		}
	}
	for _, f := range Make(1, 10*time.Minute, Targets{Processes: targets.Processes, Edges: targets.Edges, Wires: targets.Wires}) {
		if f.Kind == FillDisk || f.Kind == JumpClock || f.Kind == RotateCerts || f.Kind == FailOver {
			t.Errorf("%v is not possible", f)
		}
	}
}

func TestOneKindAlone(t *testing.T) {
	t.Parallel()
	alone := targets
	alone.Only = JumpClock
	faults := Make(1, time.Minute, alone)
	if len(faults) < 5 {
		t.Errorf("%v", faults)
	}
	for _, f := range faults {
		if f.Kind != JumpClock || !slices.Contains(jumps(f.Target), f.Amount) || f.Target == "postgres" && (f.Amount > 30 || f.Amount < -30) {
			t.Error(f)
		}
	}
	alone.Only = "earthquake"
	if got := Make(1, time.Minute, alone); len(got) != 0 {
		t.Errorf("%v", got)
	}
}

func TestFaultsSayWhatTheyDo(t *testing.T) {
	t.Parallel()
	for want, f := range map[string]Fault{
		"  12.5s  kill -9 worker-1":                         {At: 12500 * time.Millisecond, Kind: Kill, Target: "worker-1"},
		"   3.0s  slow edge-1>media by 40 ms for 2.5s":      {At: 3 * time.Second, For: 2500 * time.Millisecond, Kind: Slow, Target: "edge-1>media", Amount: 40},
		"   1.0s  narrow edge-1>media to 4 kB/s for 1.0s":   {At: time.Second, For: time.Second, Kind: Narrow, Target: "edge-1>media", Amount: 4},
		"   1.0s  jump clock of postgres by -30 s for 1.0s": {At: time.Second, For: time.Second, Kind: JumpClock, Target: "postgres", Amount: -30},
	} {
		if got := strings.TrimRight(f.String(), " "); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}
