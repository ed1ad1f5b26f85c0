package assets

import "time"

// warnAt are the shares of the storage quota, in percent, at which the account
// is told (billing.usage_warning).
var warnAt = []int64{80, 90, 100}

// gb is the unit of the event's numbers.
const gb = 1e9

// crossed says whether storage that grew from before to after bytes has passed
// one of warnAt. A quota of zero is none.
func crossed(before, after, quota int64) bool {
	if quota <= 0 {
		return false
	}
	for _, percent := range warnAt {
		line := quota / 100 * percent
		if before < line && after >= line {
			return true
		}
	}
	return false
}

// warning is the data of billing.usage_warning.
func warning(used, quota int64, now time.Time) map[string]any {
	month := time.Date(now.Year(), now.Month()+1, 1, 0, 0, 0, 0, time.UTC).Add(-time.Second)
	return map[string]any{
		"resource": "storage", "usage_percentage": float64(used*1000/quota) / 10,
		"current_usage_gb": float64(used) / gb, "quota_gb": float64(quota) / gb, "period_end": month.Format(time.RFC3339)}
}
