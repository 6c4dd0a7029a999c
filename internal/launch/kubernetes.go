package launch

import (
	"regexp"
	"strings"
)

// readKubernetes reads every container of a manifest that runs SGLang, whatever kind of object holds
// it: a Pod, a Deployment, a StatefulSet, a Job, a LeaderWorkerSet.
func readKubernetes(root *mapping, opt Options) ([]Launch, error) {
	name := root.child("metadata").text("name")
	var out []Launch
	containers(root, func(c *mapping, line int) { out = append(out, readPodContainer(c, name, line, opt)...) })
	return out, nil
}

// containers visits what lies in lists named containers, at any depth.
func containers(v any, visit func(c *mapping, line int)) {
	switch v := v.(type) {
	case *mapping:
		for i, key := range v.keys {
			list, isList := v.values[i].([]any)
			if !isList || key != "containers" {
				if key != "initContainers" {
					containers(v.values[i], visit)
				}
				continue
			}
			for _, item := range list {
				if c, ok := item.(*mapping); ok && len(c.lines) > 0 {
					visit(c, c.lines[0])
				}
			}
		}
	case []any:
		for _, item := range v {
			containers(item, visit)
		}
	}
}

func readPodContainer(c *mapping, object string, line int, opt Options) []Launch {
	env := map[string]string{}
	list, _ := c.get("env").([]any)
	for _, item := range list {
		if e, ok := item.(*mapping); ok && e.text("name") != "" {
			value, given := scalar(e.get("value"))
			if !given {
				value = reference(e.text("name")) // from a secret, a config map or a field
			}
			env[e.text("name")] = podText(value, env)
		}
	}
	var words []string
	for _, key := range []string{"command", "args"} {
		list, _ := c.get(key).([]any)
		part, _ := texts(list)
		for _, w := range part {
			words = append(words, podText(w, env))
		}
	}
	box := &Container{Runtime: "kubernetes", Image: c.text("image")}
	if r := c.get("resources"); r != nil {
		box.Args = append(box.Args, "resources: "+flat(r))
	}
	name := c.text("name")
	if object != "" {
		name = strings.TrimSuffix(object+"/"+name, "/")
	}
	a := around{
		kind: KindKubernetes, name: name, line: line, env: env, dir: c.text("workingDir"),
		container: box, version: imageVersion(box.Image),
	}
	if c.get("envFrom") != nil {
		a.notes = append(a.notes, "The container takes more variables from envFrom, which was not read.")
	}
	if launches := commandWords(words, a, opt); len(launches) > 0 {
		return launches
	}
	if len(words) > 0 && strings.HasPrefix(words[0], "--") && strings.Contains(strings.ToLower(box.Image), "sglang") {
		a.notes = append(a.notes, "The image's own entry point is taken to be python3 -m sglang.launch_server.")
		return commandWords(append([]string{"python3", "-m", "sglang.launch_server"}, words...), a, opt)
	}
	return nil
}

var podVariable = regexp.MustCompile(`\$\$\(|\$\(([A-Za-z_][\w.-]*)\)`)

// podText replaces $(NAME) by an earlier variable of the container; $$( is a plain $(.
func podText(s string, env map[string]string) string {
	return podVariable.ReplaceAllStringFunc(s, func(match string) string {
		if match == "$$(" {
			return "$("
		}
		name := match[2 : len(match)-1]
		if v, ok := env[name]; ok {
			return v
		}
		return match
	})
}
