package context

import "fmt"

// Legal checks the order that every provider asks for: the first message is the user's, every tool
// call is answered exactly once before anybody else speaks, and nothing answers a call that was not
// made. It returns nil or says which message is wrong.
func Legal(ms []Message) error {
	open := map[string]bool{} // calls that wait for their answer
	for i, m := range ms {
		switch m.Role {
		case RoleTool:
			if !open[m.ToolCallID] {
				return fmt.Errorf("message %d answers call %q, which is not open", i+1, m.ToolCallID)
			}
			delete(open, m.ToolCallID)
			continue
		case RoleUser, RoleAssistant:
		default:
			return fmt.Errorf("message %d has role %q", i+1, m.Role)
		}
		if len(open) > 0 {
			return fmt.Errorf("message %d comes before %d calls were answered", i+1, len(open))
		}
		if i == 0 && m.Role != RoleUser {
			return fmt.Errorf("the conversation begins with role %q", m.Role)
		}
		for _, c := range m.ToolCalls {
			if m.Role != RoleAssistant {
				return fmt.Errorf("message %d of role %q has tool calls", i+1, m.Role)
			}
			if c.ID == "" || open[c.ID] {
				return fmt.Errorf("message %d has an empty or repeated call id %q", i+1, c.ID)
			}
			open[c.ID] = true
		}
	}
	if len(open) > 0 {
		return fmt.Errorf("%d calls are not answered", len(open))
	}
	return nil
}
