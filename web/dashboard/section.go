package dashboard

import (
	"net/http"
	"slices"

	"sluice.dev/sluice/filters/scopes"
)

// handler shows a page to someone, or does what a form of theirs asks.
type handler func(s *site, w http.ResponseWriter, r *http.Request, v viewer) error

// section is an entry of the menu.
type section struct {
	Name     string
	Path     string // below Root
	Operator bool   // for operators only
	Scope    string // needed of anybody else; empty: none
	Product  bool   // of a product that not every deployment has
	OfOne    bool   // shows one account, which operators may choose
	show     handler
	more     map[string]handler // pages below, by path
	post     map[string]handler // forms, by path
}

// sections is the menu, and the one place that says who may see what.
var sections []section

// init breaks the circle of pages that show the menu.
func init() {
	sections = manage([]section{
		{Name: "Overview", Path: "/", show: (*site).showOverview},
		{Name: "Requests", Path: "/requests", Scope: "analytics:read", show: (*site).showRequests, more: map[string]handler{"/requests/{id}": (*site).showRequest}},
		{Name: "Edges", Path: "/edges", Operator: true, show: (*site).showEdges},
		{Name: "Routes", Path: "/routes", Operator: true, show: (*site).showRoutes},
		{Name: "Configuration", Path: "/config", Operator: true, show: (*site).showHistory,
			more: map[string]handler{"/config/{version}": (*site).showVersion},
			post: map[string]handler{"/config/{version}/rollback": (*site).rollBack, "/config/{version}/rehearse": (*site).rehearse}},
		{Name: "Keys", Path: "/keys", OfOne: true, show: (*site).showKeys,
			more: map[string]handler{"/keys/{id}": (*site).showKey, "/keys/{id}/revoke": (*site).revokeKey},
			post: map[string]handler{"/keys": (*site).makeKey, "/keys/{id}/rotate": (*site).rotateKey, "/keys/{id}/change": (*site).changeKey, "/keys/{id}/revoke": (*site).revokeKey}},
		{Name: "Usage", Path: "/usage", Scope: "billing:read", OfOne: true, show: (*site).showUsage},
		{Name: "Schedules", Path: "/schedules", Product: true, Scope: "schedules:read", OfOne: true, show: (*site).showSchedules,
			more: map[string]handler{"/schedules/{id}": (*site).showSchedule},
			post: map[string]handler{"/schedules/{id}/run": (*site).runSchedule, "/schedules/{id}/status": (*site).holdSchedule}},
		{Name: "Webhooks", Path: "/webhooks", Scope: "webhooks:read", OfOne: true, show: (*site).showWebhooks,
			more: map[string]handler{"/webhooks/{id}": (*site).showWebhook, "/webhooks/{id}/deliveries/{number}": (*site).showDelivery},
			post: map[string]handler{"/webhooks/{id}/deliveries/{number}/resend": (*site).resend, "/webhooks/{id}/status": (*site).holdWebhook, "/webhooks/{id}/test": (*site).testWebhook,
				"/webhooks/{id}/rotate": (*site).rotateWebhook, "/webhooks/{id}/recover": (*site).recoverWebhook}},
		{Name: "Payments", Path: "/payments", Product: true, Operator: true, show: (*site).showPayments},
		{Name: "Audit", Path: "/audit", Scope: scopes.Admin, show: (*site).showAudit, more: map[string]handler{"/audit/export": (*site).exportAudit}},
	})
}

// sections are those that this dashboard has.
func (s *site) sections() []section {
	return slices.DeleteFunc(slices.Clone(sections), func(sec section) bool { return s.Alone && sec.Product })
}

// Link is where the section is served.
func (sec section) Link() string {
	if sec.Path == "/" {
		return Root
	}
	return Root + sec.Path
}

// visible reports whether v may see the section.
func (sec section) visible(v viewer) bool {
	switch {
	case v.Operator:
		return true
	case sec.Operator:
		return false
	}
	return sec.Scope == "" || v.Has(sec.Scope)
}
