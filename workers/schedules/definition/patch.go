package definition

import (
	"encoding/json"
	"fmt"

	"sluice.dev/sluice/filters/decision"
	"sluice.dev/sluice/platform/apierror"
	"sluice.dev/sluice/platform/http/httpapi"
)

// Patch is a partial definition. It is merged into the old one as RFC 7396
// says: objects member by member, null removes, all else replaces. The fields
// of the schedule object may also stand at the top. Fields that only answers have, such
// as id, are passed over, so that a schedule that was read can be sent back.
type Patch struct {
	Status string // empty: not asked for

	members map[string]json.RawMessage
}

// patchFields are the names that a PATCH may use.
type patchFields struct {
	Status        *string         `json:"status"`
	Name          json.RawMessage `json:"name"`
	Description   json.RawMessage `json:"description"`
	Type          json.RawMessage `json:"type"`
	Schedule      json.RawMessage `json:"schedule"`
	Action        json.RawMessage `json:"action"`
	Webhook       json.RawMessage `json:"webhook"`
	RetryPolicy   json.RawMessage `json:"retryPolicy"`
	Tags          json.RawMessage `json:"tags"`
	CatchUpPolicy json.RawMessage `json:"catchUpPolicy"`
	MaxCatchUp    json.RawMessage `json:"maxCatchUp"`
	OverlapPolicy json.RawMessage `json:"overlapPolicy"`
	Cron          json.RawMessage `json:"cron"`
	Timezone      json.RawMessage `json:"timezone"`
	StartDate     json.RawMessage `json:"startDate"`
	EndDate       json.RawMessage `json:"endDate"`
	ExecuteAt     json.RawMessage `json:"executeAt"`
	readOnly
}

// readOnly are the fields of a schedule that only answers have.
type readOnly struct {
	ID                  json.RawMessage `json:"id"`
	ExecutionCount      json.RawMessage `json:"executionCount"`
	LastExecution       json.RawMessage `json:"lastExecution"`
	LastExecutionStatus json.RawMessage `json:"lastExecutionStatus"`
	CreatedAt           json.RawMessage `json:"createdAt"`
	UpdatedAt           json.RawMessage `json:"updatedAt"`
}

var readOnlyNames = []string{"id", "executionCount", "lastExecution", "lastExecutionStatus", "createdAt", "updatedAt"}

// timingNames are the fields of the schedule object that may stand at the top
// of a patch.
var timingNames = []string{"cron", "timezone", "startDate", "endDate", "executeAt"}

// ParsePatch reads the body of a PATCH. The error lists every field that has no
// place in one.
//
// It takes time linear in raw, and with Apply memory of at most 160 bytes for each
// of its bytes.
func ParsePatch(raw []byte) (Patch, error) {
	var fields patchFields
	if err := httpapi.Unmarshal(raw, &fields); err != nil {
		return Patch{}, err
	}
	p := Patch{members: map[string]json.RawMessage{}}
	if err := json.Unmarshal(raw, &p.members); err != nil {
		return Patch{}, fmt.Errorf("read patch: %w", err)
	}
	if fields.Status != nil {
		p.Status = *fields.Status
	}
	delete(p.members, "status")
	for _, name := range readOnlyNames {
		delete(p.members, name)
	}
	return p, p.liftTiming()
}

// liftTiming moves timing fields from the top into the schedule object.
func (p *Patch) liftTiming() error {
	inner := map[string]json.RawMessage{}
	if raw, ok := p.members["schedule"]; ok && json.Unmarshal(raw, &inner) != nil || ok && inner == nil {
		return apierror.Invalid([]decision.Detail{{Field: "schedule", Issue: "has the wrong type", Expected: "object"}})
	}
	var twice []decision.Detail
	for _, name := range timingNames {
		value, ok := p.members[name]
		if !ok {
			continue
		}
		if _, both := inner[name]; both {
			twice = append(twice, decision.Detail{Field: name, Issue: "is given twice: here and in schedule"})
		}
		inner[name] = value
		delete(p.members, name)
	}
	if len(inner) > 0 {
		raw, err := json.Marshal(inner)
		if err != nil {
			return fmt.Errorf("lift timing: %w", err)
		}
		p.members["schedule"] = raw
	}
	return apierror.Invalid(twice)
}

// Apply returns the definition with the patch merged into it. It is not checked
// yet: see Complete.
func (p Patch) Apply(old Definition) (Definition, error) {
	raw, err := json.Marshal(old)
	if err != nil {
		return Definition{}, fmt.Errorf("write definition: %w", err)
	}
	patch, err := json.Marshal(p.members)
	if err != nil {
		return Definition{}, fmt.Errorf("write patch: %w", err)
	}
	var target, change any
	if err := decodeNumbers(raw, &target); err != nil {
		return Definition{}, err
	}
	if err := decodeNumbers(patch, &change); err != nil {
		return Definition{}, err
	}
	dropOther(target, change)
	merged, err := json.Marshal(merge(target, change))
	if err != nil {
		return Definition{}, fmt.Errorf("write merged definition: %w", err)
	}
	var d Definition
	return d, httpapi.Unmarshal(merged, &d)
}

// dropOther removes the fields of the old kind of timing when a patch changes
// the kind.
func dropOther(target, change any) {
	timing, _ := member(target, "schedule").(map[string]any)
	kind := member(member(change, "schedule"), "type")
	if kind == nil || kind == timing["type"] {
		return
	}
	for _, name := range []string{"cron", "startDate", "endDate", "executeAt"} {
		delete(timing, name)
	}
}

func member(object any, name string) any {
	m, _ := object.(map[string]any)
	return m[name]
}

// merge is MergePatch of RFC 7396, section 2.
func merge(target, patch any) any {
	changes, ok := patch.(map[string]any)
	if !ok {
		return patch
	}
	merged, ok := target.(map[string]any)
	if !ok {
		merged = map[string]any{}
	}
	for name, value := range changes {
		if value == nil {
			delete(merged, name)
		} else {
			merged[name] = merge(merged[name], value)
		}
	}
	return merged
}
