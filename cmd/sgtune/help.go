package main

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"
)

// completeHelp gives every command of the tree what its --help and its refusals promise: an example,
// and one line that says what is wrong and how the command is called.
func completeHelp(root *cobra.Command) {
	root.SetHelpCommand(newHelpCommand())
	root.InitDefaultCompletionCmd()
	root.SetFlagErrorFunc(func(c *cobra.Command, err error) error {
		text, _, _ := strings.Cut(err.Error(), ": strconv.") // how Go says it helps nobody
		return usagef("%s; see %s --help", text, c.CommandPath())
	})
	for _, c := range root.Commands() {
		completeCommand(c)
	}
}

func completeCommand(c *cobra.Command) {
	for _, sub := range c.Commands() {
		completeCommand(sub)
	}
	if c.Example == "" {
		c.Example = "  " + c.CommandPath()
		if c.HasSubCommands() {
			c.Example += " " + c.Commands()[0].Name()
		}
	}
	if c.HasSubCommands() && !c.Runnable() { // without it a wrong word would be answered by help and exit 0
		c.RunE = func(c *cobra.Command, _ []string) error { return c.Help() }
	}
	check := c.Args
	if check == nil || c.DisableFlagParsing {
		return
	}
	c.Args = func(c *cobra.Command, args []string) error {
		if err := check(c, args); err != nil {
			return usagef("%w; usage: %s", err, c.UseLine())
		}
		return nil
	}
}

// newHelpCommand is cobra's own, but for a word it does not know it is as strict as the program.
func newHelpCommand() *cobra.Command {
	return &cobra.Command{
		Use: "help [command]", Short: "Help about any command", Example: "  sgtune help tune",
		RunE: func(c *cobra.Command, args []string) error {
			about, rest, err := c.Root().Find(args)
			if err != nil || about == nil || len(rest) > 0 {
				return usagef("there is no command %q; sgtune --help lists them", strings.Join(args, " "))
			}
			about.InitDefaultHelpFlag()
			return about.Help()
		},
	}
}

// oneLine is an error of cobra on one line: its suggestions stand below it.
func oneLine(text string) string {
	text, suggestions, found := strings.Cut(text, "\n\nDid you mean this?\n")
	if names := strings.Fields(suggestions); found && len(names) > 0 {
		text += fmt.Sprintf("; did you mean `%s`?", strings.Join(names, "`, `"))
	}
	return strings.Join(strings.FieldsFunc(text, func(r rune) bool { return r == '\n' }), "; ")
}
