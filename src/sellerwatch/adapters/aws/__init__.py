"""SQS and EventBridge, through one client of each that lives as long as the house.

connection    the client, and what its errors mean
messages      a message as SQS carries it
channel       what SQS is asked, ten at a time
letters       dead letters, in a queue of their own
sqs           ports.queue.Queue
layout        the queues as they have to be, made and mended
eventbridge   ports.outside.Schedules
"""
