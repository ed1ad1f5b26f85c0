package plans_test

import (
	"testing"

	"sluice.dev/sluice/media/plans"
)

func TestAnUnknownPlanHasTheFallbackRow(t *testing.T) {
	t.Parallel()
	small, large := plans.Limits{FileBytes: 1}, plans.Limits{FileBytes: 2}
	table := plans.Table{"": small, "pro": large}
	if table.Of("no such plan") != small || table.Of("pro") != large {
		t.Error("wrong row")
	}
	if (plans.Table{}).Of("pro") != (plans.Limits{}) {
		t.Error("an empty table bounds something")
	}
}
