package main

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"sluice.dev/sluice/internal/app"
)

// usageError is a command that was not given what it needs. It is told with how the
// command is used.
type usageError struct {
	command *cobra.Command
	text    string
}

func (e usageError) Error() string {
	text := e.text + "\nusage: " + e.command.UseLine()
	if e.command.Example != "" {
		text += "\nexample:\n" + e.command.Example
	}
	return text + "\nsee `" + e.command.CommandPath() + " --help`"
}

// shortNames are what some commands may also be called, by the habits of others.
var shortNames = map[string][]string{
	"list": {"ls"}, "delete": {"rm"}, "remove": {"rm"}, "revoke": {"rm"},
	"key": {"keys"}, "account": {"accounts"}, "app": {"apps"}, "limit": {"limits"}, "route": {"routes"}, "product": {"products"}, "plan": {"plans"},
	"class": {"classes"}, "certificates": {"certificate"}, "session": {"sessions"},
	"webhook": {"webhooks"}, "schedule": {"schedules"}, "event": {"events"}, "user": {"users", "people"}, "stream": {"streams"}, "invoice": {"invoices"},
}

// dress gives c and all commands below it the same manners: a word that is none is an
// error with a hint, and so is what is missing.
func dress(c *cobra.Command) {
	c.SetFlagErrorFunc(func(c *cobra.Command, err error) error { return usageError{c, err.Error()} })
	if c.HasParent() && c.Parent() == c.Root() || len(c.Aliases) == 0 {
		c.Aliases = append(c.Aliases, aliasesOf(c)...)
	}
	if c.HasSubCommands() && !c.Runnable() {
		c.Args = cobra.ArbitraryArgs
		c.RunE = func(c *cobra.Command, args []string) error {
			if len(args) == 0 {
				return c.Help()
			}
			return unknownWord(c, args[0])
		}
	}
	if args := c.Args; args != nil && c.HasParent() {
		c.Args = func(c *cobra.Command, given []string) error {
			if err := args(c, given); err != nil {
				return usageError{c, argumentsText(c, given)}
			}
			return requiredFlags(c)
		}
	}
	for _, below := range c.Commands() {
		dress(below)
	}
}

// aliasesOf are the short names of c that nothing beside it has.
func aliasesOf(c *cobra.Command) []string {
	return slices.DeleteFunc(slices.Clone(shortNames[c.Name()]), func(name string) bool {
		return c.HasParent() && slices.ContainsFunc(c.Parent().Commands(), func(o *cobra.Command) bool { return o != c && (o.Name() == name || o.HasAlias(name)) })
	})
}

// unknownWord says that word is no command below c, and which was meant.
func unknownWord(c *cobra.Command, word string) error {
	c.SuggestionsMinimumDistance = 2
	text := fmt.Sprintf("%q is no command of `%s`", word, c.CommandPath())
	if meant := c.SuggestionsFor(word); len(meant) > 0 {
		text += ": did you mean " + strings.Join(meant, " or ") + "?"
	} else if c.HasParent() {
		var names []string
		for _, below := range c.Commands() {
			if below.IsAvailableCommand() {
				names = append(names, below.Name())
			}
		}
		text += ": there are " + strings.Join(names, ", ")
	}
	return errors.New(text + "\nsee `" + c.CommandPath() + " --help`")
}

// argument is a word of a Use that stands for one, such as ID or [NAME].
var argument = regexp.MustCompile(`\[?[A-Z][A-Z0-9_.|-]*\]?`)

// argumentsText says which arguments are missing, or too many.
func argumentsText(c *cobra.Command, given []string) string {
	_, words, _ := strings.Cut(c.Use, " ")
	var needed []string
	for _, w := range argument.FindAllString(words, -1) {
		if !strings.HasPrefix(w, "[") {
			needed = append(needed, w)
		}
	}
	switch {
	case len(given) < len(needed):
		return strings.Join(needed[len(given):], " and ") + " is missing"
	case words == "":
		return fmt.Sprintf("%q is one word too many: `%s` takes none", given[0], c.CommandPath())
	default:
		return fmt.Sprintf("%q is one word too many", given[len(given)-1])
	}
}

// requiredFlags says which of the flags that c needs are missing.
func requiredFlags(c *cobra.Command) error {
	var missing []string
	c.Flags().VisitAll(func(f *pflag.Flag) {
		if len(f.Annotations[cobra.BashCompOneRequiredFlag]) > 0 && !f.Changed {
			missing = append(missing, "--"+f.Name)
		}
	})
	switch len(missing) {
	case 0:
		return nil
	case 1:
		return usageError{c, missing[0] + " is missing"}
	default:
		return usageError{c, strings.Join(missing, " and ") + " are missing"}
	}
}

// helpCommand is `sluice help`, which knows what it does not know.
func helpCommand() *cobra.Command {
	return &cobra.Command{
		Use: "help [COMMAND]...", Short: "help about a command", Args: cobra.ArbitraryArgs,
		ValidArgsFunction: func(c *cobra.Command, args []string, _ string) ([]cobra.Completion, cobra.ShellCompDirective) {
			var names []cobra.Completion
			if at, _, err := c.Root().Find(args); err == nil {
				for _, below := range at.Commands() {
					if below.IsAvailableCommand() {
						names = append(names, cobra.CompletionWithDesc(below.Name(), below.Short))
					}
				}
			}
			return names, cobra.ShellCompDirectiveNoFileComp
		},
		RunE: func(c *cobra.Command, args []string) error {
			at, rest, err := c.Root().Find(args)
			if err != nil {
				return unknownWord(c.Root(), args[0])
			}
			if len(rest) > 0 && at.HasSubCommands() {
				return unknownWord(at, rest[0])
			}
			at.InitDefaultHelpFlag()
			return at.Help()
		},
	}
}

// versionCommand is `sluice version`.
func versionCommand() *cobra.Command {
	return &cobra.Command{
		Use: "version", Short: "show the version of this program", Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			return showVersion(printing(c), app.Version)
		},
	}
}
