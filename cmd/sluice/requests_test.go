package main

import (
	"net/http"
	"strings"
	"testing"
)

// runRequests runs one of the commands of the request log against an admin API.
func runRequests(t *testing.T, api *adminAPI, args ...string) (string, error) {
	t.Helper()
	return runUse(t, api.environment(), args...)
}

const oneRequest = `{"id":"0e3f3c56","time":"2026-03-04T12:00:00.5Z","ended_at":"2026-03-04T12:00:00.6Z","edge":"edge-1","method":"GET","path":"/v1/orders/7","status":504,"route":"orders.get",
	"product":"shop","code":"gateway_timeout","account_id":"acct_1","key_id":"key_1","explanation":"The edge answered 504: product shop did not answer within the route's timeout.",
	"documentation_url":"http://gw/docs/errors/gateway_timeout","bytes_in":0,"bytes_out":9,"timings":{"received_us":50,"forwarded_us":20000,"total_us":100000}}`

func TestRequestsAreListed(t *testing.T) {
	t.Parallel()
	api := newAdminAPI(t, http.StatusOK, `{"data":[`+oneRequest+`],"pagination":{"limit":50,"has_more":false,"next_cursor":null},"not_recorded":3}`)
	text, err := runRequests(t, api, "requests", "--status", "5xx", "--route", "orders.get", "--account", "acct_1", "--limit", "7")
	want := "TIME          STATUS  METHOD  PATH          ROUTE       ACCOUNT  MS     CODE             ID\n" +
		"12:00:00.500  504     GET     /v1/orders/7  orders.get  acct_1   100.0  gateway_timeout  0e3f3c56\n" +
		"3 more failed in the last day and were not recorded: there were too many at a time\n"
	if err != nil || text != want {
		t.Errorf("%v\n%s", err, text)
	}
	if got := api.asked[0]; got != "GET /admin/v1/requests?account=acct_1&limit=7&route=orders.get&status=5xx" {
		t.Error(got)
	}
	if text, err = runRequests(t, api, "logs", "-o", "json"); err != nil || !strings.Contains(text, `"not_recorded": 3`) {
		t.Errorf("%v\n%s", err, text)
	}
}

func TestOneRequestIsShown(t *testing.T) {
	t.Parallel()
	api := newAdminAPI(t, http.StatusOK, oneRequest)
	text, err := runRequests(t, api, "request", "0e3f3c56")
	if err != nil || api.asked[0] != "GET /admin/v1/requests/0e3f3c56" {
		t.Fatal(err, api.asked)
	}
	for _, want := range []string{
		"504 GET /v1/orders/7\nThe edge answered 504: product shop did not answer within the route's timeout.\nhttp://gw/docs/errors/gateway_timeout\n",
		"credential  key_1", "check at the edge              20.000 ms  |██████████ ", "no response from the upstream  80.000 ms  |          ████",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("%q is not in\n%s", want, text)
		}
	}
}
