"""The REST door: it parses, calls one flow and answers. Nothing is decided here but who may come in.

app         the routes together               problems   every error, in one shape; the one table of status codes
routes      how a route is declared           words      what callers are told, in English and Korean
guard       a policy on every route           tokens     who is it: JSON Web Tokens; keys: what they are checked with
bodies      queries and bodies, checked       api_keys   who is it: keys of other systems
strict      JSON without surprises            limits     how often somebody may ask
asked       what stands in paths and queries  armour     headers on everything, and the last resort
shapes      what goes in and out              answers    JSON, tags, pages
document    the OpenAPI document              reference  /openapi.json and /docs
frame       what every application of ours is in
server      on a socket, in the process's own event loop

sellers · executions · products · user_agents · repair · triggers · health
"""
