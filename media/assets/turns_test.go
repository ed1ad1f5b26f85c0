package assets

import "testing"

// One who has much waiting has every other turn beside one who has little.
func TestOwnersHaveTheirTurns(t *testing.T) {
	t.Parallel()
	var turns Turns
	take := func(owner string, want bool, others ...string) {
		t.Helper()
		if got := turns.Take(owner, others); got != want {
			t.Errorf("%s beside %v: %v", owner, others, got)
		}
	}
	take("greedy", true)
	take("greedy", true)                // nobody else waits
	take("greedy", false, "b")          // b had no turn yet
	take("b", true, "greedy")           // and now it has
	take("b", false, "greedy")          // whose turn is longer ago
	take("greedy", true, "b")           //
	take("c", true, "b", "greedy")      // a new one comes first
	take("greedy", false, "b", "c")     // b's turn is the oldest
	take("b", true, "greedy", "c", "b") //
}
