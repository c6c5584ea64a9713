"""What we need: every promise asked of the outside, in prose. The contract tests are named after these sentences.

time         Clock, Chance, Bell      when, by chance, and "look again"
store        Store, Unit              what is remembered, in transactions that are plain functions
pool         Pool                     who may ask now, and what became of it
locks        Locks                    who does what only one process need do
queue        Queue                    what is to be done next, at least once
marketplace  Marketplace, Reader      asking the marketplace, and understanding its answers
robots       RobotsReader, RobotsKept what it lets crawlers ask
outside      ProductServer, Alerts, Schedules
"""
