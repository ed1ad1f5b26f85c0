package dashboard

import (
	"maps"
	"slices"
)

// pagesOf are pages and forms below a section of the menu.
type pagesOf struct {
	get, post map[string]handler
}

// managed are the pages on which things are created, changed and deleted, by the path
// of their section. A page and the form on it have one path.
var managed = map[string]pagesOf{
	"/webhooks": {
		get:  map[string]handler{"/webhooks/new": (*site).newWebhook, "/webhooks/{id}/edit": (*site).editWebhookPage, "/webhooks/{id}/delete": (*site).deleteWebhook},
		post: map[string]handler{"/webhooks/new": (*site).createWebhook, "/webhooks/{id}/edit": (*site).editWebhook, "/webhooks/{id}/delete": (*site).deleteWebhook},
	},
	"/people": {
		get:  map[string]handler{"/people/new": (*site).newPerson, "/people/add": (*site).addPersonPage, "/people/{id}": (*site).showPerson, "/people/{id}/remove": (*site).removePerson},
		post: map[string]handler{"/people/new": (*site).invitePerson, "/people/add": (*site).addPerson, "/people/{id}": (*site).changePerson, "/people/{id}/remove": (*site).removePerson},
	},
	"/access": {
		get:  map[string]handler{"/access/allowlist": (*site).allowlistPage, "/access/limit": (*site).limitPage},
		post: map[string]handler{"/access/allowlist": (*site).setAllowlist, "/access/limit": (*site).setLimit, "/access/limits/{class}/remove": (*site).removeLimit},
	},
	"/apps": {
		get:  map[string]handler{"/apps/new": (*site).newApp, "/apps/{id}": (*site).showApp, "/apps/{id}/revoke": (*site).revokeApp},
		post: map[string]handler{"/apps/new": (*site).createApp, "/apps/{id}/revoke": (*site).revokeApp},
	},
	"/accounts": {
		get:  map[string]handler{"/accounts/new": (*site).newAccount, "/accounts/{id}": (*site).showAccount, "/accounts/{id}/suspend": (*site).suspendAccount},
		post: map[string]handler{"/accounts/new": (*site).createAccount, "/accounts/{id}": (*site).changeAccount, "/accounts/{id}/suspend": (*site).suspendAccount, "/accounts/{id}/resume": (*site).resumeAccount},
	},
	"/billing": {
		get: map[string]handler{"/billing/plan": (*site).planPage, "/billing/methods/{id}/remove": (*site).removeMethod},
		post: map[string]handler{"/billing/plan": (*site).changePlan, "/billing/invoices/{id}/status": (*site).settleInvoice,
			"/billing/methods/{id}/default": (*site).makeMethodDefault, "/billing/methods/{id}/remove": (*site).removeMethod},
	},
	"/routes": {
		get: map[string]handler{"/routes/{kind}": (*site).showObjects, "/routes/new/{kind}": (*site).newObject, "/routes/{kind}/{name}": (*site).showObject,
			"/routes/{kind}/{name}/delete": (*site).deleteObjectPage},
		post: map[string]handler{"/routes/new/{kind}": (*site).createObject, "/routes/{kind}/{name}": (*site).changeObject,
			"/routes/{kind}/{name}/delete": (*site).deleteObject, "/routes/plans/{name}/offer": (*site).offerPlan},
	},
	"/schedules": {
		get:  map[string]handler{"/schedules/new": (*site).newSchedule, "/schedules/{id}/edit": (*site).editSchedulePage, "/schedules/{id}/delete": (*site).deleteSchedule},
		post: map[string]handler{"/schedules/new": (*site).createSchedule, "/schedules/{id}/edit": (*site).editSchedule, "/schedules/{id}/delete": (*site).deleteSchedule},
	},
}

// manage adds them to the menu, with the sections that are about nothing else.
func manage(list []section) []section {
	list = after(list, "/config", section{Name: "Accounts", Path: "/accounts", Operator: true, show: (*site).showAccounts})
	list = after(list, "/keys",
		section{Name: "People", Path: "/people", Scope: "users:read", OfOne: true, show: (*site).showPeople},
		section{Name: "Limits and allowlist", Path: "/access", Scope: "users:read", OfOne: true, show: (*site).showAccess},
		section{Name: "OAuth apps", Path: "/apps", Operator: true, OfOne: true, show: (*site).showApps})
	list = after(list, "/usage", section{Name: "Billing", Path: "/billing", Scope: "billing:read", OfOne: true, show: (*site).showBilling,
		more: map[string]handler{"/billing/invoices/{id}": (*site).showInvoice, "/billing/invoices/{id}/download": (*site).downloadInvoice}},
		section{Name: "Streams", Path: "/streams", Product: true, Scope: "streams:read", OfOne: true, show: (*site).showStreams,
			more: map[string]handler{"/streams/{id}": (*site).showStream}})
	for i, sec := range list {
		add, ok := managed[sec.Path]
		if !ok {
			continue
		}
		list[i].more, list[i].post = joined(sec.more, add.get), joined(sec.post, add.post)
	}
	return list
}

// joined has the handlers of both.
func joined(a, b map[string]handler) map[string]handler {
	all := maps.Clone(a)
	if all == nil {
		all = map[string]handler{}
	}
	maps.Copy(all, b)
	return all
}

// after puts sections behind the one of a path.
func after(list []section, path string, add ...section) []section {
	i := slices.IndexFunc(list, func(sec section) bool { return sec.Path == path })
	return slices.Insert(list, i+1, add...)
}
