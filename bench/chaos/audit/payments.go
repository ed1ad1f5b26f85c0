package audit

// Payment is one signed transfer, sent until it had an answer, and sometimes to
// several edges at once. Each has a payer of its own.
type Payment struct {
	Payer    string
	Served   int  // answers 2xx
	Receipts int  // of them with a receipt that says success
	Funded   bool // the payer has the funds
}

// Settled is what is stored of a payer.
type Settled struct {
	Payer         string
	Grants        int    // payments of the payer
	State         string // of the payment; empty: none
	Goods         int    // clips that the payer owns
	Balance, Held int64
}

// finished are the states from which a payment goes nowhere.
var finished = map[string]bool{"": true, "settled": true, "failed": true, "released": true, "abandoned": true}

func grants(seen Seen) Line {
	l := Line{Promise: "no payment is granted twice"}
	for _, p := range seen.Payments {
		l.Checked++
		if p.Served > 1 {
			l.breaks("one payment of %s was served %d times", p.Payer, p.Served)
		}
	}
	return l
}

func money(seen Seen, stored Stored) Line {
	l := Line{Promise: "who is served is charged once, and nobody else is"}
	all, states := map[string]Settled{}, map[string]int{}
	for _, s := range stored.Payments {
		all[s.Payer] = s
	}
	for _, p := range seen.Payments {
		if !p.Funded {
			continue
		}
		l.Checked++
		s := all[p.Payer]
		if s.State != "" {
			states[s.State]++
		}
		charged := seen.Funds - s.Balance
		want := int64(0)
		if s.State == "settled" {
			want = seen.Price
		}
		switch {
		case s.Grants > 1 || s.Goods > 1:
			l.breaks("%s has %d grants and %d clips for one payment", p.Payer, s.Grants, s.Goods)
		case charged != want || s.Held != 0:
			l.breaks("%s is charged %d with %d held, and its payment is %q", p.Payer, charged, s.Held, s.State)
		case p.Served > 0 && (s.State != "settled" || s.Goods != 1):
			l.breaks("%s was served, and its payment is %q with %d clips", p.Payer, s.State, s.Goods)
		case !finished[s.State]:
			l.breaks("the payment of %s is still %s", p.Payer, s.State)
		}
	}
	l.Note = counts(states)
	return l
}
