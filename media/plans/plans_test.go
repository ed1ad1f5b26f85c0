package plans_test

import (
	"testing"

	"sluice.dev/sluice/media/plans"
)

func TestAnUnknownPlanHasTheFallbackRow(t *testing.T) {
	t.Parallel()
	if plans.Default.Of("no such plan") != plans.Default[""] || plans.Default.Of("pro") == plans.Default[""] {
		t.Error("wrong row")
	}
	if (plans.Table{}).Of("pro") != (plans.Limits{}) {
		t.Error("an empty table bounds something")
	}
}
