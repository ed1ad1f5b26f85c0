package owner_test

import (
	"testing"

	"sluice.dev/sluice/filters/decision"
	"sluice.dev/sluice/media/api/owner"
	"sluice.dev/sluice/platform/apierror"
	"sluice.dev/sluice/platform/http/identity"
)

func TestOwnerIsTheAccountElseTheCredential(t *testing.T) {
	t.Parallel()
	cases := map[string]struct {
		caller identity.Caller
		want   owner.Owner
		code   decision.Code
	}{
		"an account":     {identity.Caller{Account: "acct_1", Key: "key_1", Plan: "pro"}, owner.Owner{ID: "acct_1", Account: "acct_1", Plan: "pro"}, ""},
		"a paying agent": {identity.Caller{Key: "pay_1"}, owner.Owner{ID: "pay_1"}, ""},
		"nobody":         {identity.Caller{Plan: "pro"}, owner.Owner{}, decision.AuthRequired},
	}
	for name, c := range cases {
		got, err := owner.From(identity.With(t.Context(), c.caller))
		if got != c.want || apierror.Code(err) != c.code {
			t.Errorf("%s: %+v, %v", name, got, err)
		}
	}
}
