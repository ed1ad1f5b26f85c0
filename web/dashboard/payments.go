package dashboard

import (
	"math/big"
	"net/http"
	"slices"
	"strings"
	"time"

	"sluice.dev/sluice/controlplane/gateway/config"
	"sluice.dev/sluice/workers/payments"
	"sluice.dev/sluice/workers/payments/payment"
)

// paymentsPage are the payments that sellers here were paid.
type paymentsPage struct {
	Now      time.Time
	State    string // of those shown; empty: any
	States   []payment.State
	Payments payments.Payments
	Sums     []earned // of what is settled, by token
	Pager    pager
	tokens   tokens
	onChain  bool
}

// earned is what was settled in one token.
type earned struct {
	Network, Amount string
	Payments        int64
}

// tokens knows how to write amounts: of the configured token in whole units.
type tokens struct {
	asset, name string
	decimals    int
}

// tokensOf is the tokens of a configuration.
func tokensOf(d config.Document) tokens {
	m := tokens{decimals: 6}
	if d.X402 == nil {
		return m
	}
	t := d.X402.Terms()
	m.asset, m.name = strings.ToLower(t.Asset), t.Name
	if m.name == "USD Coin" { // as its contract on base calls it
		m.name = "USDC"
	}
	if d.X402.Decimals != nil {
		m.decimals = int(*d.X402.Decimals)
	}
	return m
}

// write writes an amount of smallest units, of a token: 10000 as 0.01 USDC. Of a token that
// is not the configured one nobody here knows how many digits it has.
func (m tokens) write(asset, amount string) string {
	n, ok := new(big.Int).SetString(amount, 10)
	if !ok || m.asset == "" || strings.ToLower(asset) != m.asset {
		return number(amount) + " smallest units"
	}
	whole, rest := new(big.Int).QuoRem(n, new(big.Int).Exp(big.NewInt(10), big.NewInt(int64(m.decimals)), nil), new(big.Int))
	text := number(whole.String())
	if digits := rest.String(); rest.Sign() != 0 {
		digits = strings.TrimRight(strings.Repeat("0", m.decimals-len(digits))+digits, "0")
		text += "." + digits + strings.Repeat("0", max(0, 2-len(digits))) // as money is written
	} else if m.decimals >= 2 {
		text += ".00"
	}
	return text + " " + m.name
}

// Amount writes what a payment is about.
func (p paymentsPage) Amount(asset, amount string) string { return p.tokens.write(asset, amount) }

// explorers show what is on a chain, by the names of networks.
var explorers = map[string]string{"base": "https://basescan.org", "base-sepolia": "https://sepolia.basescan.org"}

// Explorer is where one can see a transaction ("tx") or an address ("address"); empty: nowhere,
// as it is in a ledger of ours, or on a chain that nobody shows.
func (p paymentsPage) Explorer(kind, network, id string) string {
	site := explorers[network]
	if !p.onChain || site == "" || !strings.HasPrefix(id, "0x") {
		return ""
	}
	return site + "/" + kind + "/" + id
}

// paymentStates are those by which payments can be chosen.
var paymentStates = []payment.State{payment.Settled, payment.Settling, payment.Granted, payment.Failed, payment.Released, payment.Abandoned, payment.Unresolved}

// showPayments shows what was paid by x402.
func (s *site) showPayments(w http.ResponseWriter, r *http.Request, v viewer) error {
	p := paymentsPage{Now: s.Now(), States: paymentStates, onChain: s.OnChain}
	if state := r.URL.Query().Get("state"); slices.Contains(paymentStates, payment.State(state)) {
		p.State = state
	}
	now, err := s.Documents.Store.Latest(r.Context())
	if err != nil {
		return err
	}
	p.tokens = tokensOf(now.Document)
	page := pageOf(r)
	if p.Payments, err = s.Payments.Find(r.Context(), page, "", p.State, ""); err != nil {
		return err
	}
	p.Sums = p.tokens.sums(p.Payments.Revenue)
	p.Pager = pagerOf(r, "/payments", page, len(p.Payments.Data), *p.Payments.Pagination.Total)
	return s.show(w, r, v, "payments", "Payments", "/payments", p)
}

// sums adds revenue up by network and token, in the order in which these come.
func (m tokens) sums(list []payments.Revenue) (sums []earned) {
	type token struct{ network, asset string }
	at, totals := map[token]int{}, []*big.Int{}
	for _, one := range list {
		t := token{one.Network, one.Asset}
		i, ok := at[t]
		if !ok {
			i = len(sums)
			at[t], sums, totals = i, append(sums, earned{Network: one.Network}), append(totals, new(big.Int))
		}
		if n, ok := new(big.Int).SetString(one.Amount, 10); ok {
			totals[i].Add(totals[i], n)
		}
		sums[i].Payments += one.Payments
		sums[i].Amount = m.write(one.Asset, totals[i].String())
	}
	return sums
}
