package kong

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"sluice.dev/sluice/controlplane/accounts/keyfile"
)

// acl is a set of groups that a route lets in or keeps out, and the scope that stands
// for it: keys of the consumers whom it lets in have it.
type acl struct {
	allow bool
	group map[string]bool
	scope string
}

// maxACLs bounds the scopes: a key has 128, with their wildcards.
const maxACLs = 100

// scopeOf is the scope that stands for the groups of an acl plugin.
func (i *importer) scopeOf(p *node) (scope, why string) {
	c := p.get("config")
	for _, name := range []string{"hide_groups_header", "always_use_authenticated_groups", "include_consumer_groups"} {
		c.get(name).ignore()
	}
	allow := append(c.strs("allow"), c.strs("whitelist")...)
	deny := append(c.strs("deny"), c.strs("blacklist")...)
	a := acl{allow: len(allow) > 0, group: map[string]bool{}}
	groups := allow
	if !a.allow {
		groups = deny
	}
	if len(groups) == 0 {
		return "", "has an acl plugin without groups"
	}
	slices.Sort(groups)
	groups = slices.Compact(groups)
	words := []string{}
	for _, g := range groups {
		a.group[g] = true
		words = append(words, word(g))
	}
	key := fmt.Sprint(a.allow, groups)
	if known := i.acls[key]; known != nil {
		return known.scope, ""
	}
	if len(i.acls) == maxACLs {
		return "", fmt.Sprintf("is of a set of groups more than %d", maxACLs)
	}
	name := strings.Join(words, "_or_")
	if !a.allow {
		name = "not_" + name
	}
	taken := func() bool {
		for _, other := range i.acls {
			if other.scope == "group:"+name {
				return true
			}
		}
		return false
	}
	if name = strings.Trim(name, "_"); len(name) > 40 || name == "" || taken() {
		sum := sha256.Sum256([]byte(key))
		name = strings.Trim(name[:min(len(name), 30)], "_") + "_" + hex.EncodeToString(sum[:4])
		name = strings.TrimPrefix(name, "_")
	}
	a.scope = "group:" + name
	i.acls[key] = &a
	return a.scope, ""
}

// scopes are all that the document has, and that keys may have.
func (i *importer) scopes() []string {
	all := []string{KeyScope}
	for _, a := range i.acls {
		all = append(all, a.scope)
	}
	slices.Sort(all)
	return all
}

// lets reports whether a consumer of some groups is let in.
func (a *acl) lets(groups []string) bool {
	in := slices.ContainsFunc(groups, func(g string) bool { return a.group[g] })
	return in == a.allow
}

// others are credentials that cannot go on working.
var others = []string{"jwt_secrets", "basicauth_credentials", "hmacauth_credentials", "oauth2_credentials", "mtls_auth_credentials", "keyauth_enc_credentials"}

// consumer is one of Kong's.
type consumer struct {
	node   *node
	name   string
	groups []string
	keys   []*node
}

// readConsumers makes rows of the consumers' keys.
func (i *importer) readConsumers() {
	list, by := []*consumer{}, map[string]*consumer{}
	for _, n := range i.root.each("consumers") {
		c := &consumer{node: n, name: n.str("username")}
		if c.name == "" {
			c.name = n.str("custom_id")
		}
		n.get("custom_id")
		list = append(list, c)
		for _, id := range []string{"username", "custom_id", "id"} {
			if text := n.str(id); text != "" && by[text] == nil {
				by[text] = c
			}
		}
		for _, g := range n.each("acls") {
			c.groups = append(c.groups, g.str("group"))
		}
		c.keys = n.each("keyauth_credentials")
		i.noteOthers(n)
		for _, p := range n.each("plugins") {
			if name := p.str("name"); i.counts(p, name) && name == "rate-limiting" {
				i.plugins.consumers[c.name] = p
			} else if name != "rate-limiting" {
				i.note(Differs, p, "plugin "+name+" for one consumer is not translated")
				p.ignore()
			}
		}
		if g := n.get("groups"); len(g.items) > 0 {
			g.ignore()
			i.note(Differs, n, "groups of consumers are not translated: see plans in docs/config.md")
		}
	}
	for field, add := range map[string]func(*consumer, *node){
		"acls":                func(c *consumer, n *node) { c.groups = append(c.groups, n.str("group")) },
		"keyauth_credentials": func(c *consumer, n *node) { c.keys = append(c.keys, n) },
	} {
		for _, n := range i.root.each(field) {
			if c := by[n.ref("consumer")]; c != nil {
				add(c, n)
			} else {
				n.ignore()
				i.note(LeftOut, n, "it is of no consumer of the file")
			}
		}
	}
	i.noteOthers(i.root)
	for _, c := range list {
		i.consumer(c)
	}
}

// noteOthers notes credentials that are not keys.
func (i *importer) noteOthers(n *node) {
	for _, field := range others {
		if f := n.get(field); len(f.items) > 0 {
			f.ignore()
			i.note(ByHand, f, field+" cannot be imported: give their owners API keys, or name who issues their tokens under issuers")
		}
	}
}

// consumer makes rows of one's keys.
func (i *importer) consumer(c *consumer) {
	if len(c.keys) == 0 {
		i.note(Ignored, c.node, "the consumer has no key")
		return
	}
	if c.name == "" {
		i.note(LeftOut, c.node, "the consumer has no name")
		return
	}
	base := keyfile.Row{Account: c.name, Scopes: []string{KeyScope}}
	for _, a := range i.acls {
		if a.lets(c.groups) {
			base.Scopes = append(base.Scopes, a.scope)
		}
	}
	slices.Sort(base.Scopes)
	for _, id := range []string{c.name, c.node.str("id")} {
		if p := i.plugins.consumers[id]; p != nil {
			if limit, ok := i.perMinute(p); ok {
				base.PerMinute = &limit
			}
		}
	}
	for at, k := range c.keys {
		row := base
		row.Name = c.name
		if len(c.keys) > 1 {
			row.Name += " " + strconv.Itoa(at+1)
		}
		row.ExternalID = k.str("id")
		if why := i.key(k, &row); why != "" {
			i.note(LeftOut, k, "the key is not imported: it "+why)
			continue
		}
		row.Line = k.line
		i.keys = append(i.keys, row)
	}
}

// placeholder are texts that something else puts a key in place of.
var placeholder = regexp.MustCompile(`\$\{|\{\{|^\$|\{vault:|^<.*>$|^%.*%$`)

// key hashes a key, and reads when it ends.
func (i *importer) key(k *node, row *keyfile.Row) (why string) {
	text := k.str("key")
	switch {
	case text == "":
		return "is not in the file"
	case placeholder.MatchString(text):
		return "is a placeholder: render the file first"
	}
	if why := keyfile.Weak(text); why != "" {
		return why
	}
	row.Sum = sha256.Sum256([]byte(text))
	seconds, ok := k.number("ttl")
	if !ok || seconds <= 0 {
		return ""
	}
	from := i.now
	if made, ok := k.number("created_at"); ok {
		from = time.Unix(made, 0)
	}
	end := from.Add(time.Duration(min(seconds, 1<<31)) * time.Second).UTC()
	if !end.After(i.now) {
		return "has expired"
	}
	row.ExpiresAt = &end
	return ""
}
