"""The REST door: it parses, calls one flow and answers. Nothing is decided here but who may come in.

app         the routes together               problems   every error, in one shape; the one table of status codes
guard       a policy on every route           tokens     who is it: JSON Web Tokens
strict      JSON without surprises            armour     headers on everything, and the last resort
shapes      what goes in and out              reference  /openapi.json and /docs
sellers · executions · health                 server     on a socket, in the process's own event loop
"""
