package authorize

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"sluice.dev/sluice/filters/credentials/apikey"
	"sluice.dev/sluice/filters/credentials/keytable"
	"sluice.dev/sluice/filters/credentials/token"
	"sluice.dev/sluice/filters/decision"
)

// shown is a credential as its text and as what is known of it.
type shown struct {
	header string
	known  Credential
}

// credentials fills e and returns credentials of every kind.
func (e *edge) credentials() map[string]shown {
	list := map[string]shown{"none": {}, "bad": {"Bearer nonsense", Credential{Kind: Bad, Code: decision.InvalidKey}}}
	for name, set := range map[string]func(*keytable.Record){
		"good": nil, "ended": func(r *keytable.Record) { r.Expires = now }, "unpaid": func(r *keytable.Record) { r.Flags = keytable.FlagUnpaid },
		"limited": func(r *keytable.Record) { r.Limit = 1 }, "of another plan": func(r *keytable.Record) { r.Plan = 2 },
		"of no plan": func(r *keytable.Record) { r.Plan = 9 }, "gone": func(r *keytable.Record) { *r = keytable.Record{Tag: r.Tag} },
	} {
		for _, bits := range [][]int{{bitRead}, {bitClips}} {
			id := uint64(len(list))
			text := e.key(id, set, bits...)
			r, _ := e.Record(keytable.TagOfKey(apikey.Hash(text)))
			if r.Kind == keytable.KindNone {
				delete(e.records, r.Tag)
			}
			list[fmt.Sprint("key ", name, bits)] = shown{"Bearer " + text, Credential{Kind: Key, Record: r}}
		}
	}
	scopes := map[string]keytable.Scopes{"streams:read": keytable.Scopes{}.With(bitRead), "other:read": {}}
	for scope, set := range scopes {
		for _, own := range []bool{true, false} {
			issuer, id := "http://gw", "sess_"+scope[:1]
			if !own {
				issuer, id = "https://id.example", "sub_"+scope[:1]
			}
			b := token.Bearer{Own: own, Credential: id, Account: account, Scopes: set, Expires: now + 100}
			list[fmt.Sprint("token ", issuer, scope)] = shown{"Bearer " + issued(issuer, id, scope, "good", now+100), Credential{Kind: Token, Bearer: b}}
		}
	}
	list["token forged"] = shown{"Bearer " + session("sess_1", "streams:read", "bad", now+100), Credential{Kind: Bad, Code: decision.InvalidToken}}
	list["token ended"] = shown{"Bearer " + session("sess_2", "streams:read", "good", now), Credential{Kind: Bad, Code: decision.TokenExpired}}
	return list
}

// Whatever a policy and a credential, a decision by what is known of the credential is
// the one that its text gets, with the same limits at the same time.
func TestAKnownCredentialIsJudgedAsItsText(t *testing.T) {
	t.Parallel()
	for seed := range uint64(200) {
		rng := rand.New(rand.NewPCG(seed, 1))
		p := newPolicy(t)
		p.Anonymous = 1 + rng.Uint32N(30)
		real, rehearsed := newTokenEdge(nil), newTokenEdge(nil)
		rehearsed.credentials()
		list := real.credentials()
		names := make([]string, 0, len(list))
		for name := range list {
			names = append(names, name)
		}
		at := int64(now)
		for range 60 {
			at += rng.Int64N(3)
			name, route := names[rng.IntN(len(names))], p.Routes[rng.IntN(len(p.Routes))].Key()
			real.header = list[name].header
			guesses := guessWindow(p, real, at, real.Look)
			if list[name].known.Kind == Token && !guesses.OK { // which tokens a worker remembers nobody else knows
				continue
			}
			want, got := Check(p, route, real, at), CheckKnown(p, route, rehearsed, list[name].known, at)
			switch want.Code {
			case decision.AuthRequired, decision.InvalidKey, decision.InvalidToken: // what is wrong with a text takes the text
				want.Detail = decision.Detail{}
			}
			if want.Code != got.Code || want.Rate != got.Rate || want.Known != got.Known || want.Detail != got.Detail || want.RetryAfter != got.RetryAfter || want.Caller.Account != got.Caller.Account {
				t.Fatalf("seed %d, %s at %s: %+v, want %+v", seed, name, route, got, want)
			}
		}
	}
}
