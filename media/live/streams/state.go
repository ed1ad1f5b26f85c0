package streams

// Status is where a stream is in its life.
type Status string

// The states of a stream. A stream that has ended can be started again: each
// start opens a new session.
const (
	Idle     Status = "idle"     // never started
	Starting Status = "starting" // started by an action, and no publisher has come yet
	Live     Status = "live"     // on air
	Paused   Status = "paused"   // on air, with its output held
	Ended    Status = "ended"    // its last session is over
)

// Statuses lists every state.
var Statuses = []string{string(Idle), string(Starting), string(Live), string(Paused), string(Ended)}

// Action is what a caller, a schedule or the engine asks of a stream.
type Action string

// The actions (contract 6.3).
const (
	Start  Action = "start"
	Stop   Action = "stop"
	Pause  Action = "pause"
	Resume Action = "resume"
)

// Actions lists every action.
var Actions = []string{string(Start), string(Stop), string(Pause), string(Resume)}

// Past is the action as the result of an execution names it: started, stopped, …
func (a Action) Past() string {
	switch a {
	case Stop:
		return "stopped"
	case Start:
		return "started"
	default:
		return string(a) + "d"
	}
}

// OnAir reports whether a session is open in this state.
func (s Status) OnAir() bool { return s == Starting || s == Live || s == Paused }

// Next is the state after action a in state s; Starting becomes Live where pictures are
// there. ok is false when the action makes no sense there. Next == s means that there
// is nothing to do: an action that is asked for twice, as a retrying scheduler may,
// succeeds twice.
func Next(s Status, a Action) (next Status, ok bool) {
	switch a {
	case Start:
		if s == Live || s == Paused {
			return Live, true
		}
		return Starting, true
	case Stop:
		if s.OnAir() {
			return Ended, true
		}
		return s, true
	case Pause:
		return Paused, s == Live || s == Paused
	case Resume:
		return Live, s == Live || s == Paused
	}
	return s, false
}
