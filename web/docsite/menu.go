package docsite

import (
	"slices"
	"strings"
)

// group is a part of the menu.
type group struct {
	Name  string
	names []string
	Items []item
}

// item is a line of the menu.
type item struct{ Name, Title, Link string }

// groups are the parts of the menu, with the names of their pages in order. What
// is in no group stands in the last one.
var groups = []group{
	{Name: "Get started", names: []string{"quickstart", "install", "concepts", "config", "troubleshooting", "compare"}},
	{Name: "Your API", names: []string{"api", "keys", "people", "oauth", "import-openapi", "validation", "requests", "usage", "billing", "webhooks", "idempotency", "agents", "openapi", "sdks", "clients"}},
	{Name: "Traffic", names: []string{"websocket", "grpc", "rollouts", "rehearsal", "shadow", "caching", "certificates", "client-certificates"}},
	{Name: "Come from elsewhere", names: []string{"from-kong", "from-unkey", "behind-nginx"}},
	{Name: "Products of the platform", names: []string{"tour", "runtime", "schedules", "media", "captions", "engines", "x402", "phone", "dash", "editor", "broadcast", "voice", "vision", "moq"}},
	{Name: "Deploy", names: []string{"systemd", "docker", "kubernetes", "sidecar", "profiles", "postgres", "sizing", "scale", "upgrading", "upgrade-notes"}},
	{Name: "Operate", names: []string{"operations", "logs", "dashboard", "accounts", "backup", "secrets", "fleet", "key-feed", "security", "hardening"}},
	{Name: "Reference", names: []string{"cli", "settings", "changelog"}},
	{Name: "More"},
}

// Chapter is a page beside those of docs, which others serve, as the menu names it.
type Chapter struct{ Name, Title, Link string }

// Chapters puts pages of others to the beginning of the menu's Reference. It is called before the
// first page is served.
func (s *Site) Chapters(list ...Chapter) {
	i := slices.IndexFunc(s.menu, func(g group) bool { return g.Name == "Reference" })
	if i < 0 {
		s.menu = append(s.menu, group{Name: "Reference"})
		i = len(s.menu) - 1
	}
	items := make([]item, len(list))
	for k, c := range list {
		items[k] = item(c)
	}
	s.menu[i].Items = append(items, s.menu[i].Items...)
}

// grouped puts pages into their groups.
func (s *Site) grouped() (list []group) {
	left := map[string]Page{}
	for name, p := range s.pages {
		left[name] = p
	}
	for _, g := range groups {
		add := func(p Page) {
			short, _, _ := strings.Cut(p.Title, ": ")
			g.Items = append(g.Items, item{p.Name, short, p.Link()})
		}
		for _, name := range g.names {
			if p, ok := left[name]; ok {
				add(p)
				delete(left, name)
			}
		}
		if g.names == nil {
			for _, p := range left {
				add(p)
			}
			slices.SortFunc(g.Items, func(a, b item) int { return strings.Compare(a.Title, b.Title) })
		}
		if g.Items != nil {
			list = append(list, g)
		}
	}
	return list
}

// moved is a heading of before, and where it is now.
type moved struct{ From, To, Title string }

// elsewhere are headings that a page had, as PAGE#HEADING, and where they are now. The old page
// names them at its end, so that addresses of before lead there.
var elsewhere = []moved{
	{From: "operations#requests-and-logs", To: "logs#requests-and-logs"}, {From: "operations#traces", To: "logs#traces"}, {From: "operations#clocks", To: "logs#clocks"},
	{From: "operations#memory", To: "sizing#memory"}, {From: "operations#sizing", To: "sizing"}, {From: "operations#backup-and-restore", To: "backup"},
	{From: "operations#who-may-do-what-in-the-database", To: "secrets#who-may-do-what-in-the-database"}, {From: "operations#one-secret-for-each-process", To: "secrets#one-secret-for-each-process"},
	{From: "operations#replacing-secrets", To: "secrets#replacing-secrets"}, {From: "operations#upgrade-without-downtime", To: "upgrading"}, {From: "operations#releases", To: "upgrading#releases"},
	{From: "keys#sessions", To: "people#sessions"}, {From: "keys#the-team", To: "people#the-team"}, {From: "keys#billing", To: "billing#usage-invoices-and-plan-of-an-account"},
	{From: "keys#the-feed", To: "key-feed"}, {From: "keys#admin-api", To: "accounts"}, {From: "keys#repeating-a-request", To: "idempotency"},
}

// movedFrom are the headings that a page had and others have now.
func (s *Site) movedFrom(name string) (list []moved) {
	for _, m := range elsewhere {
		page, heading, _ := strings.Cut(m.From, "#")
		to, fragment, _ := strings.Cut(m.To, "#")
		if p, ok := s.pages[to]; ok && page == name {
			title := p.Title
			for _, h := range p.Contents {
				if h.ID == fragment {
					title += ": " + h.Title
				}
			}
			list = append(list, moved{heading, Root + "/" + m.To, title})
		}
	}
	return list
}
