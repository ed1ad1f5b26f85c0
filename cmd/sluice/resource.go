package main

import (
	"net/http"
	"slices"

	"github.com/spf13/cobra"
	"sluice.dev/sluice/internal/app"
)

// resource is a kind of thing with an address of its own in an API. What it does not say,
// it cannot do.
type resource struct {
	use, name, plural string // the command, and what help calls one and many
	gateway           bool   // the public API; false: the admin API
	path              string
	// Shown: of each in a list, those that wide shows too, and of one besides the list's.
	list, wide, one []string
	listOnly        []string                                                // those of a list that one does not have
	filters         []option                                                // of the list
	cursor          bool                                                    // its list goes by cursor
	create, update  []option                                                // nil: it cannot be created, or changed; a file may say all of it
	example         string                                                  // of create
	shown           []string                                                // of what was created alone
	complete        func(c *cobra.Command, args []string, r *request) error // adds to what is created what was left out
	remove          bool                                                    // it can be deleted
	// actions are further calls; theirs with {0} in the path are on one.
	actions []call
}

// command is the group of commands of the resource.
func (r resource) command(env app.Environment) *cobra.Command {
	one := r.path + "/{0}"
	ids := listed{r.path + "?limit=100", "id"}.first(env, r.gateway)
	object := slices.DeleteFunc(slices.Concat(r.list, r.wide, r.one), func(f string) bool { return slices.Contains(r.listOnly, f) })
	c := group(r.use, "manage "+r.plural)
	add := func(k call) {
		k.gateway = r.gateway
		c.AddCommand(k.command(env))
	}
	list := call{use: "list", short: "list " + r.plural, path: r.path, paged: !r.cursor, list: r.list, wide: r.wide, flags: r.filters}
	if r.cursor {
		list.flags = append([]option{{name: "limit", fallback: 50, help: "number to list, at most 100", field: "limit"}}, r.filters...)
	}
	add(list)
	if r.create != nil || r.update != nil || r.remove || r.one != nil {
		add(call{use: "get ID", short: "show a " + r.name, args: cobra.ExactArgs(1), path: one, one: object, complete: ids})
	}
	if r.create != nil {
		add(call{use: "create", short: "create a " + r.name, method: http.MethodPost, path: r.path, flags: r.create, file: true, one: append(object, r.shown...), example: r.example, edit: r.creation})
	}
	if r.update != nil {
		add(call{use: "update ID", short: "change a " + r.name, args: cobra.ExactArgs(1), method: http.MethodPatch, path: one, flags: r.update, file: true, one: object, complete: ids, edit: somethingGiven})
	}
	if r.remove {
		add(call{use: "delete ID", short: "delete a " + r.name, args: cobra.ExactArgs(1), method: http.MethodDelete, path: one, done: "is deleted", complete: ids})
	}
	for _, k := range r.actions {
		add(r.action(k, ids))
	}
	return c
}

// creation refuses to create nothing, and completes what is to be created.
func (r resource) creation(c *cobra.Command, args []string, asked *request) error {
	if err := somethingGiven(c, args, asked); err != nil || r.complete == nil {
		return err
	}
	return r.complete(c, args, asked)
}

// action completes what an action on one leaves out.
func (r resource) action(k call, ids cobra.CompletionFunc) call {
	if k.args == nil && argument.MatchString(k.use) {
		k.args, k.complete = cobra.ExactArgs(len(argument.FindAllString(k.use, -1))), ids
	}
	if k.one == nil && k.list == nil && k.done == "" && k.show == nil {
		k.one = slices.DeleteFunc(slices.Concat(r.list, r.wide), func(f string) bool { return slices.Contains(r.listOnly, f) })
	}
	return k
}

// text is a flag of a text that is in the body, or the query, if it is given.
func text(name, field, help string, values ...string) option {
	return option{name: name, fallback: "", help: help, field: field, given: true, values: values}
}

// must is f, which has to be given.
func must(f option) option {
	f.required = true
	return f
}

// number is a flag of a number that is in the body if it is given.
func number(name, field, help string) option {
	return option{name: name, fallback: 0, help: help, field: field, given: true}
}

// yes is a flag of a truth that is in the body if it is given.
func yes(name, field, help string) option {
	return option{name: name, fallback: false, help: help, field: field, given: true}
}

// many is a flag of texts that are in the body if they are given.
func many(name, field, help string) option {
	return option{name: name, fallback: []string(nil), help: help + "; may be repeated, or separated by commas", field: field, given: true}
}
